"""Networks of usual kinds at reduced size, with random weights: what export.py makes ONNX models of.

Each function gives a network in evaluation mode and the extents of its input. The architectures are those of torchvision
and timm, made narrow and shallow by the arguments that they take; those below that neither has are written out.
"""

import timm
import torch
import torchvision
from torch import nn
from torch.nn import functional

models = torchvision.models


def resnet():
    return timm.models.resnet.ResNet(timm.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=10,
                                     stem_width=16, channels=(16, 24, 32, 48)), (2, 3, 64, 64)


def resnext_squeeze_excite():
    return timm.models.resnet.ResNet(timm.models.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10, cardinality=4, base_width=4,
                                     stem_width=16, stem_type="deep", avg_down=True, channels=(16, 32, 48, 64),
                                     block_args={"attn_layer": "se"}), (1, 3, 48, 48)


def vgg():
    network = models.VGG(models.vgg.make_layers([8, "M", 16, "M", 24, 24, "M"], batch_norm=True), init_weights=False)
    network.classifier = nn.Sequential(nn.Linear(24 * 7 * 7, 32), nn.ReLU(), nn.Dropout(), nn.Linear(32, 10))
    return network, (1, 3, 56, 56)


def squeezenet():
    return models.squeezenet1_1(num_classes=10), (1, 3, 64, 64)


def densenet():
    return models.DenseNet(growth_rate=8, block_config=(2, 3, 2), num_init_features=16, num_classes=10), (1, 3, 48, 48)


def googlenet():
    return models.GoogLeNet(num_classes=10, aux_logits=False, init_weights=False), (1, 3, 64, 64)


def inception_v3():
    return models.Inception3(num_classes=10, aux_logits=False, init_weights=False), (1, 3, 75, 75)


def mobilenet_v2():
    return models.MobileNetV2(num_classes=10, width_mult=0.25), (1, 3, 64, 64)


def mobilenet_v3():
    return timm.create_model("mobilenetv3_small_050", num_classes=10), (1, 3, 64, 64)


def mnasnet():
    return models.MNASNet(0.25, num_classes=10), (1, 3, 64, 64)


def shufflenet_v2():
    return models.ShuffleNetV2([2, 2, 2], [12, 16, 32, 64, 96], num_classes=10), (1, 3, 64, 64)


def efficientnet():
    return timm.models.efficientnet._gen_efficientnet("efficientnet_b0", channel_multiplier=0.25, depth_multiplier=0.5,
                                                      num_classes=10), (1, 3, 64, 64)


def efficientnet_v2():
    return timm.models.efficientnet._gen_efficientnetv2_s("efficientnetv2_rw_s", channel_multiplier=0.25,
                                                          depth_multiplier=0.25, rw=True, num_classes=10), (1, 3, 64, 64)


def regnet():
    config = timm.models.regnet.RegNetCfg(depth=6, w0=16, wa=16.0, wm=2.0, group_size=8, se_ratio=0.25)
    return timm.models.regnet.RegNet(config, num_classes=10), (1, 3, 64, 64)


def ghostnet():
    return timm.create_model("ghostnet_050", num_classes=10), (1, 3, 64, 64)


def repvgg():
    return timm.models.byobnet.ByobNet(timm.models.byobnet.ByoModelCfg(
        blocks=tuple(timm.models.byobnet.ByoBlockCfg("rep", d=1, c=c, s=2) for c in (8, 16, 24)),
        stem_type="rep", stem_chs=8), num_classes=10), (1, 3, 48, 48)


def convnext():
    return timm.models.convnext.ConvNeXt(num_classes=10, depths=(1, 1, 2, 1), dims=(16, 24, 32, 48)), (1, 3, 64, 64)


def convmixer():
    return timm.models.convmixer.ConvMixer(24, 2, kernel_size=5, patch_size=4, num_classes=10), (1, 3, 32, 32)


def vit():
    return timm.models.vision_transformer.VisionTransformer(
        img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=10), (2, 3, 32, 32)


def vit_torchvision():
    return models.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=3, hidden_dim=48, mlp_dim=96,
                                    num_classes=10), (1, 3, 32, 32)


def swin():
    return timm.models.swin_transformer.SwinTransformer(
        img_size=32, patch_size=2, embed_dim=16, depths=(2, 2), num_heads=(2, 4), window_size=4, num_classes=10), (1, 3, 32, 32)


def mlp_mixer():
    return timm.models.mlp_mixer.MlpMixer(img_size=32, patch_size=8, embed_dim=32, num_blocks=2, num_classes=10), (1, 3, 32, 32)


def poolformer():
    return timm.models.metaformer.MetaFormer(depths=(1, 1), dims=(16, 24), num_classes=10), (1, 3, 48, 48)


def deeplab():
    """Atrous convolutions, pooling over the image, and bilinear upsampling to the extents of the input."""
    class Backbone(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
                                        nn.Conv2d(16, 24, 3, 2, 1), nn.BatchNorm2d(24), nn.ReLU())

        def forward(self, x):
            return {"out": self.layers(x)}

    segmentation = models.segmentation
    network = segmentation.DeepLabV3(Backbone(), segmentation.deeplabv3.DeepLabHead(24, 5, [2, 4, 6]))

    class Scores(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, x):
            return self.network(x)["out"]

    return Scores(), (1, 3, 40, 40)


class Unet(nn.Module):
    """Ronneberger's U-Net of two levels; `up` makes what doubles the extents."""

    def __init__(self, up):
        super().__init__()
        self.down1, self.down2, self.bottom = self.block(3, 8), self.block(8, 16), self.block(16, 32)
        self.up2, self.up1 = up(32, 16), up(16, 8)
        self.decode2, self.decode1 = self.block(32, 16), self.block(16, 8)
        self.last = nn.Conv2d(8, 2, 1)

    @staticmethod
    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                             nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(functional.max_pool2d(first, 2))
        y = self.bottom(functional.max_pool2d(second, 2))
        y = self.decode2(torch.cat([second, self.up2(y)], 1))
        y = self.decode1(torch.cat([first, self.up1(y)], 1))
        return torch.sigmoid(self.last(y))


def unet_transposed():
    return Unet(lambda inputs, outputs: nn.ConvTranspose2d(inputs, outputs, 2, stride=2)), (1, 3, 48, 48)


def unet_bilinear():
    return Unet(lambda inputs, outputs: nn.Sequential(
        nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(inputs, outputs, 1))), (1, 3, 48, 48)


def unet_diffusion():
    """As of diffusion models: group normalisation, SiLU, attention over the pixels, an embedding of the time."""
    class Block(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.norm1, self.norm2 = nn.GroupNorm(4, inputs), nn.GroupNorm(4, outputs)
            self.conv1, self.conv2 = nn.Conv2d(inputs, outputs, 3, 1, 1), nn.Conv2d(outputs, outputs, 3, 1, 1)
            self.time = nn.Linear(16, outputs)
            self.skip = nn.Conv2d(inputs, outputs, 1)

        def forward(self, x, time):
            y = self.conv1(functional.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
            return self.conv2(functional.silu(self.norm2(y))) + self.skip(x)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Linear(16, 16)
            self.stem = nn.Conv2d(3, 8, 3, 1, 1)
            self.down, self.middle, self.up = Block(8, 16), Block(16, 16), Block(24, 8)
            self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
            self.last = nn.Conv2d(8, 3, 3, 1, 1)

        def forward(self, x):
            angles = 0.3 * torch.exp(torch.arange(8) * -0.5)
            time = self.time(torch.cat([angles.sin(), angles.cos()])[None, :])
            stem = self.stem(x)
            y = self.down(functional.avg_pool2d(stem, 2), time)
            n, c, h, w = y.shape
            tokens = y.flatten(2).transpose(1, 2)
            tokens = tokens + self.attention(tokens, tokens, tokens, need_weights=False)[0]
            y = self.middle(tokens.transpose(1, 2).reshape(n, c, h, w), time)
            y = functional.interpolate(y, scale_factor=2, mode="nearest")
            return self.last(self.up(torch.cat([y, stem], 1), time))

    return Network(), (1, 3, 16, 16)


def vae_decoder():
    """Rombach's latent diffusion at reduced size: group normalisation and SiLU in front of every convolution."""
    class Block(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.layers = nn.Sequential(*(layer for _ in range(2) for layer in (
                nn.GroupNorm(4, channels, eps=1e-6), nn.SiLU(), nn.Conv2d(channels, channels, 3, 1, 1))))

        def forward(self, x):
            return x + self.layers(x)

    class Attention(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.norm = nn.GroupNorm(4, channels, eps=1e-6)
            self.attention = nn.MultiheadAttention(channels, 1, batch_first=True)

        def forward(self, x):
            tokens = self.norm(x).flatten(2).transpose(1, 2)
            return x + self.attention(tokens, tokens, tokens, need_weights=False)[0].transpose(1, 2).reshape(x.shape)

    return nn.Sequential(
        nn.Conv2d(4, 16, 3, 1, 1), Block(16), Attention(16), nn.Upsample(scale_factor=2), nn.Conv2d(16, 16, 3, 1, 1),
        Block(16), nn.GroupNorm(4, 16, eps=1e-6), nn.SiLU(), nn.Conv2d(16, 3, 3, 1, 1)), (1, 4, 48, 48)


def super_resolution():
    """Shi's ESPCN: the channels become pixels, and the enlarged input is added."""
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(3, 16, 5, padding=2), nn.PReLU(16), nn.Conv2d(16, 12, 3, padding=1),
                                        nn.PReLU(), nn.Conv2d(12, 27, 3, padding=1), nn.PixelShuffle(3))

        def forward(self, x):
            return self.layers(x) + functional.interpolate(x, scale_factor=3, mode="bicubic", align_corners=False)

    return Network(), (1, 3, 12, 16)


def style_transfer():
    """Johnson's network: reflected edges, instance normalisation, nearest neighbours."""
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.Sequential(nn.ReflectionPad2d(4), nn.Conv2d(3, 8, 9), nn.InstanceNorm2d(8, affine=True), nn.ReLU(),
                                      nn.ReflectionPad2d(1), nn.Conv2d(8, 16, 3, 2), nn.InstanceNorm2d(16, affine=True), nn.ReLU())
            self.up = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(16, 8, 3), nn.InstanceNorm2d(8, affine=True), nn.ReLU(),
                                    nn.ReflectionPad2d(4), nn.Conv2d(8, 3, 9))

        def forward(self, x):
            return self.up(functional.interpolate(self.down(x), scale_factor=2, mode="nearest"))

    return Network(), (1, 3, 32, 32)


class Convolution(nn.Sequential):
    def __init__(self, inputs, outputs, size=1, stride=1):
        super().__init__(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs), nn.SiLU())


def yolo_anchors():
    """YOLOv5's way: CSP blocks, pooling pyramid, two scales, boxes decoded by anchors."""
    class Csp(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.first, self.second = Convolution(channels, channels // 2), Convolution(channels, channels // 2)
            self.inner = nn.Sequential(Convolution(channels // 2, channels // 2), Convolution(channels // 2, channels // 2, 3))
            self.last = Convolution(channels, channels)

        def forward(self, x):
            first = self.first(x)
            return self.last(torch.cat([first + self.inner(first), self.second(x)], 1))

    class Network(nn.Module):
        classes, stride = 4, (4, 8)

        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(Convolution(3, 8, 3, 2), Convolution(8, 16, 3, 2), Csp(16))
            self.deep = nn.Sequential(Convolution(16, 32, 3, 2), Csp(32))
            self.before, self.after = Convolution(32, 16), Convolution(64, 32)
            self.lateral = Convolution(32, 16)
            self.merge = Csp(32)
            self.heads = nn.ModuleList(nn.Conv2d(32, 3 * (self.classes + 5), 1) for _ in range(2))
            self.register_buffer("anchors", torch.tensor([[[4.0, 5], [8, 10], [13, 16]], [[23, 29], [43, 55], [73, 105]]]))

        def forward(self, x):
            fine = self.stem(x)
            coarse = self.before(self.deep(fine))
            pools = [coarse]
            for _ in range(3):
                pools.append(functional.max_pool2d(pools[-1], 5, 1, 2))
            coarse = self.after(torch.cat(pools, 1))
            fine = self.merge(torch.cat([functional.interpolate(self.lateral(coarse), scale_factor=2, mode="nearest"), fine], 1))
            boxes = []
            for i, features in enumerate((fine, coarse)):
                y = self.heads[i](features)
                n, _, h, w = y.shape
                y = y.view(n, 3, self.classes + 5, h, w).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
                rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
                grid = torch.stack((columns, rows), 2).expand(1, 3, h, w, 2).float() - 0.5
                place, size, scores = y.split((2, 2, self.classes + 1), 4)
                place = (place * 2 + grid) * self.stride[i]
                size = (size * 2) ** 2 * self.anchors[i].view(1, 3, 1, 1, 2)
                boxes.append(torch.cat((place, size, scores), 4).view(n, -1, self.classes + 5))
            return torch.cat(boxes, 1)

    return Network(), (1, 3, 64, 64)


def yolo_distances():
    """YOLOv8's way: no anchors, distances to the edges as the mean of a distribution."""
    class Network(nn.Module):
        classes, bins = 4, 8

        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(Convolution(3, 8, 3, 2), Convolution(8, 16, 3, 2))
            self.deep = Convolution(16, 16, 3, 2)
            self.boxes = nn.ModuleList(nn.Conv2d(16, 4 * self.bins, 1) for _ in range(2))
            self.scores = nn.ModuleList(nn.Conv2d(16, self.classes, 1) for _ in range(2))
            self.mean = nn.Conv2d(self.bins, 1, 1, bias=False)
            self.mean.weight.data = torch.arange(self.bins, dtype=torch.float).view(1, self.bins, 1, 1)
            self.mean.weight.requires_grad = False

        def forward(self, x):
            fine = self.stem(x)
            levels = [fine, self.deep(fine)]
            points, strides = [], []
            for y, stride in zip(levels, (4, 8)):
                rows, columns = torch.meshgrid(torch.arange(y.shape[2]) + 0.5, torch.arange(y.shape[3]) + 0.5, indexing="ij")
                points.append(torch.stack((columns, rows), -1).view(-1, 2))
                strides.append(torch.full((y.shape[2] * y.shape[3], 1), float(stride)))
            points, strides = torch.cat(points).transpose(0, 1), torch.cat(strides).transpose(0, 1)
            y = torch.cat([torch.cat((self.boxes[i](level), self.scores[i](level)), 1).flatten(2)
                           for i, level in enumerate(levels)], 2)
            boxes, scores = y.split((4 * self.bins, self.classes), 1)
            n, _, count = boxes.shape
            distances = self.mean(boxes.view(n, 4, self.bins, count).transpose(2, 1).softmax(1)).view(n, 4, count)
            first, second = distances.chunk(2, 1)
            begin, end = points - first, points + second
            boxes = torch.cat(((begin + end) / 2, end - begin), 1) * strides
            return torch.cat((boxes, scores.sigmoid()), 1)

    return Network(), (1, 3, 32, 32)


def yolo_assigned():
    """Boxes by assignments to parts of a tensor, as in YOLOv5."""
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 21, 3, 2, 1))

        def forward(self, x):
            y = self.stem(x)
            n, _, h, w = y.shape
            y = y.view(n, 3, 7, h, w).permute(0, 1, 3, 4, 2).sigmoid().clone()
            rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            y[..., 0:2] = (y[..., 0:2] * 2 - 0.5 + torch.stack((columns, rows), -1).float()) * 4
            y[..., 2:4] = (y[..., 2:4] * 2) ** 2 * 3
            y[:, 1, ::2, 1:3] += 1
            y[:, 2, 1, 1] = 0
            return y.reshape(n, -1, 7)

    return Network(), (1, 3, 32, 32)


ALL = {function.__name__: function for function in [
    resnet, resnext_squeeze_excite, vgg, squeezenet, densenet, googlenet, inception_v3, mobilenet_v2,
    mobilenet_v3, mnasnet, shufflenet_v2, efficientnet, efficientnet_v2, regnet, ghostnet, repvgg, convnext,
    convmixer, vit, vit_torchvision, swin, mlp_mixer, poolformer, deeplab, unet_transposed, unet_bilinear, unet_diffusion,
    vae_decoder, super_resolution, style_transfer, yolo_anchors, yolo_distances, yolo_assigned]}


def make(name):
    """The network in evaluation mode, and an input. Weights are random such that what passes them keeps its size; parameters
    and statistics that start equal, such as zeros, are made different."""
    torch.manual_seed(0)
    network, extents = ALL[name]()
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)) and module.weight.requires_grad:
                nn.init.kaiming_normal_(module.weight)
            if isinstance(module, nn.BatchNorm2d) and module.weight.abs().mean() < 0.5:
                module.weight.add_(0.8)  # RepVGG's branches start near 0.1, and others at nothing
        for values in [*network.parameters(), *network.buffers()]:
            if values.numel() > 1 and values.is_floating_point() and (values == values.flatten()[0]).all():
                values.add_(torch.empty_like(values).uniform_(-0.2, 0.2))
    return network.eval(), torch.randn(extents)
