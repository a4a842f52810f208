"""Compares models of transformers and diffusers, small and with random weights, with Kiln and without.

    KILN_DRIVER=emulator KILN_CACHE=off python models.py [MODEL ...]

Prints for each model how much of it runs on Kiln, the functions that do not, and the largest difference of results and of
gradients, relative to the largest element. Exits with 1 if any is above 1e-4. Needs both packages (docs/pytorch.md).
"""

import argparse
import copy
import sys
import warnings

import torch

import kiln.torch

TOLERANCE = 1e-4
LEAST_GRADIENT = 1e-7  # of a parameter that the loss does not depend on, such as the bias of keys: sums of errors


def labels_of(words, *shape):
    return torch.randint(0, words, shape)


# Each makes (model, its arguments, the name of its result).

def bert():
    from transformers import BertConfig, BertForMaskedLM
    words = labels_of(50, 2, 7)
    config = BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
                        max_position_embeddings=16)
    return BertForMaskedLM(config), {"input_ids": words, "labels": words}, "logits"


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    words = labels_of(50, 2, 7)
    config = GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=2, n_positions=16)
    return GPT2LMHeadModel(config), {"input_ids": words, "labels": words}, "logits"


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    words = labels_of(50, 2, 7)
    config = LlamaConfig(vocab_size=50, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=1, max_position_embeddings=16)
    return LlamaForCausalLM(config), {"input_ids": words, "labels": words, "use_cache": False}, "logits"


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    config = WhisperConfig(vocab_size=60, num_mel_bins=8, d_model=16, encoder_layers=1, decoder_layers=1,
                           encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
                           max_source_positions=10, max_target_positions=12, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                           decoder_start_token_id=3)
    arguments = {"input_features": torch.randn(2, 8, 20), "labels": labels_of(60, 2, 6)}
    return WhisperForConditionalGeneration(config), arguments, "logits"


def segformer():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation
    config = SegformerConfig(num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3],
                             strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16,
                             num_labels=5, drop_path_rate=0.0)
    arguments = {"pixel_values": torch.randn(2, 3, 32, 32), "labels": labels_of(5, 2, 32, 32)}
    return SegformerForSemanticSegmentation(config), arguments, "logits"


def convnext():
    from transformers import ConvNextConfig, ConvNextForImageClassification
    config = ConvNextConfig(num_stages=2, hidden_sizes=[8, 16], depths=[1, 1], num_labels=4)
    arguments = {"pixel_values": torch.randn(2, 3, 32, 32), "labels": labels_of(4, 2)}
    return ConvNextForImageClassification(config), arguments, "logits"


def unet2d():
    from diffusers import UNet2DModel
    model = UNet2DModel(sample_size=16, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
                        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))
    return model, {"sample": torch.randn(2, 3, 16, 16), "timestep": torch.tensor([3, 50])}, "sample"


def autoencoder_kl():
    from diffusers import AutoencoderKL
    model = AutoencoderKL(block_out_channels=(8, 16), norm_num_groups=4, sample_size=16,
                          down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
    return model, {"sample": torch.randn(2, 3, 16, 16)}, "sample"


MODELS = {each.__name__: each for each in (bert, gpt2, llama, whisper, segformer, convnext, unet2d, autoencoder_kl)}


def difference(own, other):
    return float((own - other).abs().max() / other.abs().max().clamp(min=LEAST_GRADIENT))


def run(model, arguments, result):
    """The result, and the gradients by name where there are any."""
    model.zero_grad()
    outputs = model(**arguments)
    tensor = outputs[result]
    if not torch.is_grad_enabled():
        return tensor, {}
    (outputs["loss"] if "labels" in arguments else tensor.square().mean()).backward()
    return tensor.detach(), {name: each.grad for name, each in model.named_parameters() if each.grad is not None}


def compare(model, arguments, result):
    """The largest difference of a model, its report, and the functions that PyTorch computes."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0  # masks differ
    plain = copy.deepcopy(model)
    kiln.torch.optimize(model)
    worst = 0.0
    for trains, has_gradients in ((True, True), (False, True), (False, False)):
        model.train(trains)
        plain.train(trains)
        with torch.set_grad_enabled(has_gradients):
            own, own_gradients = run(model, arguments, result)
            # Gradients of Conv1d by oneDNN differ from run to run in PyTorch 1.13.
            with torch.backends.mkldnn.flags(enabled=False):
                wanted, gradients = run(plain, arguments, result)
        assert own_gradients.keys() == gradients.keys() and bool(gradients) == has_gradients
        worst = max(worst, difference(own, wanted))
        for name, gradient in gradients.items():
            if gradient.abs().max() > LEAST_GRADIENT:
                worst = max(worst, difference(own_gradients[name], gradient))
    report = kiln.torch.report(model)
    return worst, report.summary(), sorted({place.function for place in report.on_pytorch})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    names = parser.parse_args().models or list(MODELS)
    if unknown := set(names) - MODELS.keys():
        parser.error(f"no model {', '.join(sorted(unknown))}: {', '.join(MODELS)}")
    warnings.filterwarnings("ignore")
    wrong = 0
    print("| model | on Kiln | by PyTorch | largest difference |\n| --- | --- | --- | --- |")
    for name in names:
        torch.manual_seed(0)
        worst, summary, others = compare(*MODELS[name]())
        wrong += not worst <= TOLERANCE
        print(f"| {name} | {summary} | {', '.join(others)} | {worst:.1e} |", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
