/* Softmax of four equal values by a model in a file: 0.25 each. Before that, an error. */
#include <kiln/c/model.h>
#include <kiln/kiln.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
  kiln_context* context = NULL;
  kiln_model* model = NULL;
  kiln_memory* memory = NULL;
  float values[16] = {1, 1, 1, 1, 1, 1, 1, 1};
  if (count < 2) return 2;
  kiln_status status = kiln_context_create(NULL, &context);
  if (status == KILN_OK && (kiln_model_create(context, "no/such/file.onnx", NULL, &model) != KILN_IO_ERROR ||
                            strstr(kiln_last_error(), "no/such/file.onnx") == NULL)) {
    return 3;
  }
  kiln_model_options options = kiln_model_options_default();
  options.batch = 2;
  if (status == KILN_OK) status = kiln_model_create(context, arguments[1], &options, &model);
  if (status == KILN_OK) status = kiln_memory_create(context, sizeof values, &memory);
  if (status == KILN_OK) status = kiln_memory_upload(memory, values, sizeof values);
  kiln_model_tensor_info info = kiln_model_tensor_info_default();
  if (status == KILN_OK) status = kiln_model_get_input(model, 0, &info);
  if (status == KILN_OK && (info.rank != 2 || info.extents[0] != 2 || info.extents[1] != 4)) return 4;

  const int64_t extents[2] = {2, 4};
  float* data = kiln_memory_data(memory);
  kiln_tensor x, y;
  if (status == KILN_OK) status = kiln_tensor_packed(&x, data, KILN_F32, 2, extents, NULL);
  if (status == KILN_OK) status = kiln_tensor_packed(&y, data + 8, KILN_F32, 2, extents, NULL);
  const kiln_named_tensor input = {"x", &x}, output = {"y", &y};
  if (status == KILN_OK) status = kiln_model_run(model, NULL, &input, 1, &output, 1);
  if (status == KILN_OK) status = kiln_memory_download(memory, values, sizeof values);
  if (status != KILN_OK) fprintf(stderr, "%s: %s\n", kiln_status_name(status), kiln_last_error());
  printf("kiln %s: %g %g %g %g\n", kiln_version(), values[12], values[13], values[14], values[15]);
  kiln_memory_destroy(memory);
  kiln_model_destroy(model);
  kiln_context_destroy(context);
  return status == KILN_OK ? 0 : 1;
}
