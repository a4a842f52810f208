// Store: what tuning runs were asked to do, and how far they are.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "record_rows.h"
#include "schema.h"
#include "store.h"

namespace kiln::cache {
namespace {

constexpr std::array all_states = {LayerState::waiting, LayerState::running, LayerState::done, LayerState::failed,
                                   LayerState::left};

LayerState parse_state(std::string_view text) {
  const auto found =
      std::find_if(all_states.begin(), all_states.end(), [&](LayerState s) { return to_string(s) == text; });
  if (found == all_states.end()) throw_damaged();
  return *found;
}

// The sessions of the process of ?1 that share its layers: those of equal devices.
constexpr const char* sharing =
    "(SELECT b.session FROM runs a JOIN runs b USING(workload, part, host) JOIN sessions sa ON sa.id = a.session JOIN "
    "sessions sb ON sb.id = b.session WHERE a.session = ?1 AND sa.device = sb.device)";

RunProgress progress_of(const Query& row) {
  RunProgress result;
  int column = 0;
  const auto text = [&] { return std::string(row.text(column++)); };
  Session& session = result.session;
  session = {text(), text(), text(), text(), row.integer(4), std::nullopt};
  if (!row.null(5)) session.ended_ms = row.integer(5);
  column = 6;
  result.run = {session.id, text(), text(), text(), row.integer(9), std::nullopt};
  if (!row.null(10)) result.run.seconds_left = row.real(10);
  return result;
}

}  // namespace

std::string_view to_string(LayerState state) {
  switch (state) {
    case LayerState::waiting:
      return "waiting";
    case LayerState::running:
      return "running";
    case LayerState::done:
      return "done";
    case LayerState::failed:
      return "failed";
    case LayerState::left:
      return "left";
  }
  return "unknown";
}

void Store::begin_run(const Run& run, std::span<const std::string> requests) {
  Transaction transaction(db_, Access::write);
  db_.query(
         "DELETE FROM runs WHERE session = ?1 OR (workload = ?2 AND part = ?3 AND host <> ?4 AND session IN (SELECT "
         "id FROM sessions WHERE device = (SELECT device FROM sessions WHERE id = ?1)))",
         run.session, run.workload, run.part, run.host)
      .run();
  db_.query("DELETE FROM run_layers WHERE session NOT IN (SELECT session FROM runs)").run();
  db_.query("INSERT INTO runs(session, workload, part, host, seen, seconds_left) VALUES (?1, ?2, ?3, ?4, ?5, NULL)",
            run.session, run.workload, run.part, run.host, run.seen_ms)
      .run();
  const std::string insert = fmt::format(
      "INSERT INTO run_layers(session, request, state, error) SELECT ?1, ?2, 'waiting', '' WHERE NOT EXISTS (SELECT 1 "
      "FROM run_layers WHERE request = ?2 AND session IN {})",
      sharing);
  for (const std::string& request : requests) db_.query(insert.c_str(), run.session, request).run();
  transaction.commit();
}

void Store::report_run(std::string_view session, std::int64_t seen_ms, std::optional<double> seconds_left,
                       std::span<const RunLayer> changed) {
  Transaction transaction(db_, Access::write);
  {
    Query query = db_.query("UPDATE runs SET seen = ?2, seconds_left = ?3 WHERE session = ?1", session, seen_ms);
    if (seconds_left) {
      query.bind(3, *seconds_left);
    } else {
      query.bind_null(3);
    }
    query.run();
  }
  // Whoever takes a layer up has it from then on.
  const std::string update = fmt::format(
      "UPDATE run_layers SET session = ?1, state = ?3, error = ?4 WHERE request = ?2 AND session IN {}", sharing);
  for (const RunLayer& layer : changed) {
    db_.query(update.c_str(), session, layer.request, to_string(layer.state), layer.error).run();
  }
  transaction.commit();
}

std::vector<RunProgress> Store::runs() {
  const Transaction snapshot(db_, Access::read);
  std::vector<RunProgress> result;
  if (db_.integer_of("PRAGMA user_version") < first_version_with_runs) return result;
  {
    Query query = db_.query(
        "SELECT id, device, plan, kiln, started, ended, workload, part, host, seen, seconds_left FROM runs JOIN "
        "sessions ON sessions.id = runs.session ORDER BY started, id");
    while (query.step()) result.push_back(progress_of(query));
  }
  for (RunProgress& progress : result) {
    Query query =
        db_.query("SELECT state, COUNT(*) FROM run_layers WHERE session = ?1 GROUP BY state", progress.session.id);
    while (query.step()) progress.layers[parse_state(query.text(0))] = query.integer(1);
    Query failed =
        db_.query("SELECT request, error FROM run_layers WHERE session = ?1 AND state = 'failed' ORDER BY request",
                  progress.session.id);
    while (failed.step()) {
      progress.failed.push_back({std::string(failed.text(0)), LayerState::failed, std::string(failed.text(1))});
    }
  }
  return result;
}

}  // namespace kiln::cache
