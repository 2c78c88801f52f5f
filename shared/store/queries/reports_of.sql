-- The reports on one delivery, from its history: one for each attempt, and one for
-- each round that was cancelled.
--
-- $1 the delivery, $2 and $3 bound the ids of its event.
with stands as materialized (
    select d.round, d.attempt_count, d.state, d.terminal_at
    from hookstead.done_deliveries d
    where d.delivery_id = $1
),
subject as materialized (
    select s.kind as provider, e.event_type
    from (
        select l.event_id from hookstead.live_deliveries l where l.delivery_id = $1
        union
        select d.event_id from hookstead.done_deliveries d where d.delivery_id = $1
    ) of_event
    join hookstead.events e
        on e.event_id = of_event.event_id and e.event_id between $2::uuid and $3::uuid
    join hookstead.sources s on s.source_id = e.source_id and s.report_event_type
)
select
    facts.round as "round!", facts.attempt as "attempt!", facts.status as "status!",
    facts.attempt_count as "attempt_count!", facts.duration_ms, facts.error_class,
    facts.processed_at as "processed_at!", i.instance_id as "instance_id!",
    subject.provider as "provider?", subject.event_type as "event_type?"
from (
    select
        a.round, a.attempt_number as attempt, coalesce(ended.state, 'retrying') as status,
        a.attempt_number as attempt_count, a.latency_ms as duration_ms, a.error_class,
        a.ended_at as processed_at
    from hookstead.attempts a
    left join stands ended
        on ended.round = a.round and ended.attempt_count = a.attempt_number and ended.state <> 'cancelled'
    where a.delivery_id = $1
    union all
    select ended.round, 0, ended.state, ended.attempt_count, null, null, ended.terminal_at
    from stands ended
    where ended.state = 'cancelled'
) facts
cross join hookstead.installation i
left join subject on true
-- The end of a round without an attempt comes last in it, whatever the clocks say.
order by facts.round, facts.attempt = 0, facts.attempt
