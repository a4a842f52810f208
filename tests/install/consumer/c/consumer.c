/* Softmax of four equal values by an installed Kiln: 0.25 each. Before that, an error. */
#include <kiln/kiln.h>
#include <stdio.h>

int main(void) {
  char* key = NULL;
  if (kiln_request_key("no_such_operation", &key) != KILN_PARSE_ERROR || kiln_last_error()[0] == 0) return 2;

  kiln_context *context = NULL, *another = NULL;
  kiln_plan* plan = NULL;
  kiln_memory* memory = NULL;
  float values[8] = {1, 1, 1, 1};
  kiln_status status = kiln_context_create(NULL, &context);
  if (status == KILN_OK) status = kiln_context_create(NULL, &another); /* which says nothing again */
  if (status == KILN_OK) status = kiln_plan_create(context, "softmax_forward x=f32:1x4", &plan);
  if (status == KILN_OK) status = kiln_memory_create(context, sizeof values, &memory);
  if (status == KILN_OK) status = kiln_memory_upload(memory, values, sizeof values);
  float* data = kiln_memory_data(memory);
  const void* operands[] = {data, data + 4};
  if (status == KILN_OK) status = kiln_plan_run(plan, NULL, operands, 2, NULL, NULL);
  if (status == KILN_OK) status = kiln_memory_download(memory, values, sizeof values);
  if (status != KILN_OK) fprintf(stderr, "%s: %s\n", kiln_status_name(status), kiln_last_error());
  printf("kiln %s: %g %g %g %g\n", kiln_version(), values[4], values[5], values[6], values[7]);
  kiln_memory_destroy(memory);
  kiln_plan_destroy(plan);
  kiln_context_destroy(another);
  kiln_context_destroy(context);
  return status == KILN_OK ? 0 : 1;
}
