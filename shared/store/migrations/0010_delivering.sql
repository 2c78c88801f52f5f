-- What workers need: finishing, re-arming, switching off, and one row that says
-- whether anyone is told.
set local role hookstead_owner;

-- This installation, towards the control plane. One row.
create table hookstead.installation (
    only_row boolean primary key default true,
    instance_id uuid not null default gen_random_uuid(),
    -- Since when finished attempts are reported. Null: they are not.
    reporting_since timestamptz,
    constraint installation_one_row check (only_row)
);
insert into hookstead.installation default values;

-- Where our own announcements come from: subscriptions switched off, and such.
insert into hookstead.sources (name, kind) values ('hookstead', 'outbox');

-- Until when a relay has taken a row to send it on.
alter table hookstead.reports add column taken_until timestamptz;
alter table hookstead.dead_letter_notices add column taken_until timestamptz;
-- What the attempt says, and needed by whoever moves the notice on.
alter table hookstead.dead_letter_notices add column attempt_count integer not null default 0;
alter table hookstead.dead_letter_notices add constraint dead_letter_notices_attempt_count_range
    check (attempt_count >= 0);

-- A rate limit as one time: up to when what was taken so far has used it up.
alter table hookstead.subscriptions add column rate_used_until timestamptz;

-- What is due is looked for all the time, so rows that are in the queue already
-- must not stand in the way: they have an index of their own.
drop index hookstead.live_deliveries_pending_idx;
create index live_deliveries_due_idx on hookstead.live_deliveries (next_attempt_at)
    where state = 'pending' and scheduled_at is null;
create index live_deliveries_scheduled_idx on hookstead.live_deliveries (scheduled_at)
    where state = 'pending' and scheduled_at is not null;

-- Deliveries of a subscription that is enabled again.
create index done_deliveries_cancelled_idx on hookstead.done_deliveries (subscription_id, terminal_at)
    where state = 'cancelled';

-- Ends attempts: one call for a batch, all in the caller's transaction. Whoever
-- knows the lease may end it, and nobody else: of a lease that was lost nothing
-- is written. Runs as the owner because no role may delete from the queue or
-- write history by itself.
--
-- `finishes` is an array of objects; the rule that led from the outcome to the
-- state has been applied before. Returns one row per finish that was written.
create function hookstead.finish_attempts(finishes jsonb)
returns table (delivery_id uuid, consecutive_failures integer, first_failure_at timestamptz)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- Rows are looked up by their keys, also by a plan that was kept from an empty queue.
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
-- A scan that remains counts as dear beyond measure, and dear statements are compiled:
-- a second, for what takes a millisecond.
set jit = off
as $$
#variable_conflict use_column
begin
    return query
    with f as materialized (
        select *
        from jsonb_to_recordset(finishes) as f (
            delivery_id uuid, round integer, attempt integer, lease_id uuid, expired_only boolean,
            state text, state_reason text, next_attempt_at timestamptz, attempt_budget integer,
            deferred_until_limit timestamptz,
            started_at timestamptz, ended_at timestamptz, latency_ms integer, status_code integer,
            outcome text, error_class text, error_detail text, response_sha256 text,
            response_headers jsonb, partner_request_id text, worker_id text, region text,
            alive boolean, report_id uuid, report_status text, provider text, event_type text)
    ),
    -- In one order, so that a worker and a relay that end the same leases never
    -- wait for each other in a circle.
    ended as materialized (
        select
            f.*, l.event_id, l.subscription_id, l.created_at, l.last_attempt_at, l.replay_id,
            l.filter_match_us, l.ordering_key, l.policy
        from f
        join hookstead.live_deliveries l on l.delivery_id = f.delivery_id
        where l.state = 'leased'
          and l.lease_id = f.lease_id
          and l.round = f.round
          and l.attempt_count = f.attempt
          and (not f.expired_only or l.lease_expires_at <= clock_timestamp())
        order by l.delivery_id
        for update of l
    ),
    again as (
        update hookstead.live_deliveries l
        set state = 'pending', state_reason = e.state_reason, next_attempt_at = e.next_attempt_at,
            scheduled_at = null, lease_id = null, lease_expires_at = null, leased_by = null,
            attempt_budget = e.attempt_budget, deferred_until_limit = e.deferred_until_limit,
            last_error_class = e.error_class
        from ended e
        where l.delivery_id = e.delivery_id and e.state = 'pending'
    ),
    over as (
        delete from hookstead.live_deliveries l
        using ended e
        where l.delivery_id = e.delivery_id and e.state <> 'pending'
    ),
    archived as (
        insert into hookstead.done_deliveries (
            delivery_id, event_id, subscription_id, created_at, last_attempt_at, replay_id, round,
            attempt_count, attempt_budget, filter_match_us, state, state_reason, last_error_class,
            ordering_key, policy)
        select
            e.delivery_id, e.event_id, e.subscription_id, e.created_at, e.last_attempt_at, e.replay_id,
            e.round, e.attempt, e.attempt_budget, e.filter_match_us, e.state, e.state_reason,
            e.error_class, e.ordering_key, e.policy
        from ended e
        where e.state <> 'pending'
    ),
    tried as (
        insert into hookstead.attempts (
            delivery_id, round, attempt_number, started_at, ended_at, latency_ms, status_code,
            outcome, error_class, error_detail, response_sha256, response_headers,
            partner_request_id, worker_id, region)
        select
            e.delivery_id, e.round, e.attempt, e.started_at, e.ended_at, e.latency_ms, e.status_code,
            e.outcome, e.error_class, e.error_detail, decode(e.response_sha256, 'hex'),
            e.response_headers, e.partner_request_id, e.worker_id, e.region
        from ended e
    ),
    announced as (
        insert into hookstead.dead_letter_notices (
            delivery_id, round, event_id, subscription_id, state_reason, attempt_count)
        select e.delivery_id, e.round, e.event_id, e.subscription_id, e.state_reason, e.attempt
        from ended e
        where e.state = 'dead_letter'
    ),
    reported as (
        insert into hookstead.reports (
            report_id, schema_version, instance_id, job_id, status, attempt_count, duration_ms,
            error_class, processed_at, provider, event_type)
        select
            e.report_id, 1, i.instance_id, e.delivery_id, e.report_status, e.attempt, e.latency_ms,
            e.error_class, e.ended_at, e.provider, e.event_type
        from ended e
        cross join hookstead.installation i
        where i.reporting_since is not null
    ),
    -- One sign of life among them outweighs the failures.
    told as materialized (
        select e.subscription_id, bool_or(e.alive) as alive, count(*)::integer as failures
        from ended e
        where e.alive is not null
        group by e.subscription_id
    ),
    patients as materialized (
        select s.subscription_id, t.alive, t.failures
        from told t
        join hookstead.subscriptions s on s.subscription_id = t.subscription_id
        where not t.alive or s.consecutive_failures > 0 or s.paused_until is not null
        order by s.subscription_id
        for no key update of s
    ),
    health as (
        update hookstead.subscriptions s
        set consecutive_failures = case
                when p.alive then 0
                else least(s.consecutive_failures::bigint + p.failures, 2147483647)::integer
            end,
            first_failure_at = case when p.alive then null else coalesce(s.first_failure_at, now()) end,
            paused_until = case when p.alive then null else s.paused_until end
        from patients p
        where s.subscription_id = p.subscription_id
        returning s.subscription_id, s.consecutive_failures, s.first_failure_at
    )
    select e.delivery_id, h.consecutive_failures, h.first_failure_at
    from ended e
    left join health h on h.subscription_id = e.subscription_id and not e.alive;
end
$$;

-- Switches a subscription off and says so to whoever subscribed to that. Returns
-- whether it was on.
create function hookstead.disable_subscription(id uuid, reason text)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    switched_off text;
begin
    update hookstead.subscriptions
    set disabled_at = now(), disabled_reason = reason, updated_at = now()
    where subscription_id = id and disabled_at is null
    returning name into switched_off;
    if switched_off is null then
        return false;
    end if;
    insert into hookstead.outbox (
        source_id, aggregate_type, aggregate_id, event_type, payload)
    select
        s.source_id, 'subscription', id::text, 'subscription.disabled',
        convert_to(
            json_build_object('subscription_id', id, 'name', switched_off, 'reason', reason)::text,
            'UTF8')
    from hookstead.sources s
    where s.name = 'hookstead';
    return true;
end
$$;

-- Begins the next round of deliveries that are over: those in one of `states`,
-- whose last round is the one named, and whose subscription is on. Returns those
-- that it began. Runs as the owner: it waits for rows that its callers may not lock.
--
-- The locks come in statements of their own, so that the last one sees what others
-- did before they let go of them: another re-arm, or the finish of a round that this
-- call was not told of and that must not be begun a second time.
create function hookstead.rearm_deliveries(ids uuid[], rounds integer[], states text[])
returns table (delivery_id uuid, round integer)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform pg_advisory_xact_lock(hashtextextended('hookstead.rearm', 0));
    perform from hookstead.live_deliveries l where l.delivery_id = any (ids) order by l.delivery_id for update;
    return query
    insert into hookstead.live_deliveries as l (
        delivery_id, event_id, subscription_id, next_attempt_at, round, attempt_budget,
        filter_match_us, ordering_key, policy)
    select
        d.delivery_id, d.event_id, d.subscription_id, now(), d.round + 1,
        1 + jsonb_array_length(s.retry_policy -> 'schedule_s'),
        d.filter_match_us, d.ordering_key,
        nullif(s.retry_policy, hookstead.default_retry_policy())
    from (select distinct * from unnest(ids, rounds)) as a (delivery_id, round)
    join hookstead.done_deliveries d on d.delivery_id = a.delivery_id and d.round = a.round
    join hookstead.subscriptions s on s.subscription_id = d.subscription_id and s.disabled_at is null
    where d.state = any (states)
      and not exists (
          select from hookstead.done_deliveries n where n.delivery_id = d.delivery_id and n.round > d.round)
    on conflict (delivery_id) do nothing
    returning l.delivery_id, l.round;
end
$$;

-- The same for dead letters alone: what a worker does with a notice that was
-- moved back into its queue.
create function hookstead.rearm_dead_letters(ids uuid[], rounds integer[])
returns table (delivery_id uuid, round integer)
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    select r.delivery_id, r.round from hookstead.rearm_deliveries(ids, rounds, '{dead_letter}') r
$$;

-- History is written by finish_attempts alone.
revoke insert on hookstead.done_deliveries, hookstead.attempts, hookstead.reports, hookstead.dead_letter_notices
    from hookstead_worker, hookstead_relay;
grant execute on function hookstead.finish_attempts(jsonb) to hookstead_worker, hookstead_relay;
grant execute on function hookstead.disable_subscription(uuid, text) to hookstead_worker, hookstead_admin;
grant execute on function hookstead.rearm_dead_letters(uuid[], integer[]) to hookstead_worker;
grant execute on function hookstead.rearm_deliveries(uuid[], integer[], text[]) to hookstead_admin;

-- Claiming writes a rate limit, pausing a time, and the row's checks run as whoever
-- writes it; equal refusals are counted from the history.
grant execute on function hookstead.is_retry_policy(jsonb) to hookstead_worker;
grant update (rate_used_until, paused_until) on hookstead.subscriptions to hookstead_worker;
grant select (delivery_id, round, attempt_number, outcome, error_class, status_code, response_sha256)
    on hookstead.attempts to hookstead_worker;

-- Reaping tells lost workers from the first of them, and what to report.
grant select (delivery_id, round, attempt_number, error_class) on hookstead.attempts to hookstead_relay;
grant select (event_id, source_id, event_type) on hookstead.events to hookstead_relay;
grant select, update (reporting_since) on hookstead.installation to hookstead_relay;
grant select on hookstead.installation to hookstead_admin;
