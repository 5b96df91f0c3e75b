"""Questions to an export that many people ask, as SQL."""

from collections.abc import Mapping

from msgspec import Struct

from wave_agent.replay.outcomes import FAILED, SAYS_NO

_BLOCKED = f"{SAYS_NO} AND mode <> 'shadow'"


class ReadyQuestion(Struct, frozen=True):
    asks: str
    sql: str


QUESTIONS: Mapping[str, ReadyQuestion] = {
    "slowest": ReadyQuestion(
        "Which hooks take longest?",
        """
        SELECT name, event, count(*) AS runs,
               round(approx_quantile(duration_ms, 0.5), 1) AS p50_ms,
               round(approx_quantile(duration_ms, 0.99), 1) AS p99_ms,
               round(max(duration_ms), 1) AS max_ms, round(sum(duration_ms) / 3600000, 2) AS hours
        FROM hook_runs WHERE NOT is_async GROUP BY ALL ORDER BY p99_ms DESC, name LIMIT 20""",
    ),
    "failing": ReadyQuestion(
        "Which hooks fail, and how?",
        f"""
        SELECT name, event, failure, count(*) AS failures, count(*) FILTER (let_through) AS let_through,
               max(started) AS last
        FROM hook_runs WHERE {FAILED} GROUP BY ALL ORDER BY failures DESC, name LIMIT 20""",
    ),
    "let-through": ReadyQuestion(
        "How many failures were let through, by week?",
        """
        SELECT CAST(date_trunc('week', day) AS DATE) AS week, name, count(*) AS let_through,
               count(DISTINCT session_id) AS sessions
        FROM hook_runs WHERE let_through GROUP BY ALL ORDER BY week DESC, let_through DESC, name LIMIT 100""",
    ),
    "denied": ReadyQuestion(
        "What was denied most?",
        """
        SELECT tool, program, coalesce(denied_by, denied) AS denied_by, count(*) AS calls,
               count(DISTINCT session_id) AS sessions
        FROM tool_calls WHERE denied IS NOT NULL GROUP BY ALL ORDER BY calls DESC, tool, program LIMIT 20""",
    ),
    "rollout": ReadyQuestion(
        "How do hooks compare where they are enforced and where they are shadow?",
        f"""
        WITH rolled_out AS (
            SELECT name, event FROM hook_runs GROUP BY ALL HAVING bool_or(mode = 'shadow') AND bool_or(mode <> 'shadow')
        ), by_session AS (
            SELECT name, event, mode, repository, count(*) AS runs, count(*) FILTER ({SAYS_NO}) AS blocks,
                   count(*) FILTER ({FAILED}) AS failures
            FROM hook_runs SEMI JOIN rolled_out USING (name, event)
            GROUP BY name, event, mode, repository, source, session_id
        )
        SELECT name, event, mode, repository, count(*) AS sessions,
               round(100 * avg(CAST(blocks > 0 AS INTEGER)), 2) AS percent_of_sessions_blocked,
               sum(runs)::BIGINT AS runs, round(100 * sum(blocks) / sum(runs), 2) AS percent_of_runs_blocked,
               sum(failures)::BIGINT AS failures
        FROM by_session GROUP BY ALL ORDER BY name, event, repository, mode LIMIT 100""",
    ),
    "repositories": ReadyQuestion(
        "Where are hooks busiest, by repository?",
        f"""
        SELECT repository, count(DISTINCT session_id) AS sessions, count(*) AS hook_runs,
               count(*) FILTER ({_BLOCKED}) AS blocks, count(*) FILTER ({FAILED}) AS failures
        FROM hook_runs GROUP BY ALL ORDER BY hook_runs DESC, repository LIMIT 20""",
    ),
    "users": ReadyQuestion(
        "Who is blocked most, and by what?",
        f"""
        SELECT "user", repository, count(*) FILTER ({_BLOCKED}) AS blocks, count(*) AS hook_runs,
               mode(name) FILTER ({_BLOCKED}) AS mostly_by
        FROM hook_runs GROUP BY ALL ORDER BY blocks DESC, "user", repository LIMIT 20""",
    ),
    "days": ReadyQuestion(
        "How did it develop, by day?",
        f"""
        SELECT day, count(DISTINCT session_id) AS sessions, count(*) AS hook_runs,
               round(100 * avg(CAST({_BLOCKED} AS INTEGER)) FILTER (mode <> 'shadow'), 2) AS percent_blocked,
               count(*) FILTER ({FAILED}) AS failures, round(approx_quantile(duration_ms, 0.99), 1) AS p99_ms
        FROM hook_runs GROUP BY ALL ORDER BY day DESC LIMIT 60""",
    ),
    "costs": ReadyQuestion(
        "What do sessions cost, by repository and user?",
        """
        SELECT repository, "user", count(*) AS sessions, sum(requests) AS requests, sum(input_tokens) AS input_tokens,
               sum(output_tokens) AS output_tokens, round(sum(cost_usd), 2) AS cost_usd
        FROM sessions GROUP BY ALL ORDER BY cost_usd DESC NULLS LAST, requests DESC LIMIT 20""",
    ),
}
