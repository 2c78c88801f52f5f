-- Moves what is due of paused subscriptions towards the end of the pause, by a minute
-- at most, because it may end early; spread over some seconds so that not everything
-- comes at once then.
--
-- $1 how many, $2 seconds of the spread.
with paused as materialized (
    select w.subscription_id
    from hookstead.waiting_subscriptions w
    join hookstead.subscriptions s on s.subscription_id = w.subscription_id
    where w.next_attempt_at <= now() and s.disabled_at is null and s.destination_kind <> 'pull'
      and s.paused_until > now()
),
chosen as materialized (
    select l.delivery_id
    from paused p
    cross join lateral (
        select d.delivery_id
        from hookstead.live_deliveries d
        where d.subscription_id = p.subscription_id
          and d.state = 'pending' and d.scheduled_at is null
          and d.next_attempt_at <= now()
        order by d.next_attempt_at
        limit $1::bigint
        for update skip locked
    ) l
    limit $1::bigint
),
moved as (
    update hookstead.live_deliveries d
    set next_attempt_at = random() * $2::float8 * interval '1 second' + (
        select least(s.paused_until, now() + interval '1 minute')
        from hookstead.subscriptions s where s.subscription_id = d.subscription_id)
    where d.delivery_id = any (array(select c.delivery_id from chosen c))
    returning 1
)
select count(*) as "moved!" from moved
