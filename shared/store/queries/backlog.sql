-- How much there is to do, and for how long it has been waiting. Counts stop at $1;
-- ages in seconds.
with waiting as materialized (
    select w.next_attempt_at
    from hookstead.waiting_subscriptions w
    join hookstead.subscriptions s on s.subscription_id = w.subscription_id
    where s.disabled_at is null and s.destination_kind <> 'pull'
      and (s.paused_until is null or s.paused_until <= now())
),
scheduled as materialized (
    select q.next_attempt_at
    from hookstead.scheduled_subscriptions q
    join hookstead.subscriptions s on s.subscription_id = q.subscription_id
    where s.disabled_at is null and s.destination_kind <> 'pull'
      and (s.paused_until is null or s.paused_until <= now())
)
select
    (
        select extract(epoch from now() - min(d.next_attempt_at))::float8
        from (select next_attempt_at from waiting union all select next_attempt_at from scheduled) d
    ) as overdue_s,
    (
        select extract(epoch from now() - l.created_at)::float8
        from hookstead.live_deliveries l order by l.delivery_id limit 1
    ) as oldest_undelivered_s,
    (
        select count(*) from (
            select from hookstead.live_deliveries l
            where l.state = 'pending' and l.scheduled_at is null limit $1::bigint
        ) x
    ) as "waiting!",
    (
        select count(*) from (
            select from hookstead.live_deliveries l
            where l.state = 'pending' and l.scheduled_at is not null limit $1::bigint
        ) x
    ) as "scheduled!",
    (
        select count(*) from (
            select from hookstead.live_deliveries l where l.state = 'leased' limit $1::bigint
        ) x
    ) as "leased!",
    (select count(*) from (select from hookstead.outbox limit $1::bigint) x) as "outbox_rows!",
    (
        select extract(epoch from now() - o.created_at)::float8
        from hookstead.outbox o order by o.expand_at limit 1
    ) as oldest_outbox_s,
    (
        select count(*) from (select from hookstead.outbox o where o.failures > 0 limit $1::bigint) x
    ) as "outbox_failed!",
    (select count(*) from (select from hookstead.reports limit $1::bigint) x) as "reports!",
    (select count(*) from (select from hookstead.dead_letter_notices limit $1::bigint) x) as "notices!"
