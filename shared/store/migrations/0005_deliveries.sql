-- Who is owed what: the queue, its archive and the log of attempts.
set local role hookstead_owner;

-- The queue: every delivery that is not finished, and nothing else. The one table
-- that is updated often, kept small and vacuumed early; a fifth of every page is
-- left free so that a new version can stay on its page.
create table hookstead.live_deliveries (
    delivery_id uuid not null,
    event_id uuid not null,
    subscription_id uuid not null,
    created_at timestamptz not null default now(),
    -- Not before this time. Meaningful while pending.
    next_attempt_at timestamptz not null,
    -- When the relay put it into the queue for next_attempt_at. Null: not yet.
    scheduled_at timestamptz,
    last_attempt_at timestamptz,
    lease_expires_at timestamptz,
    lease_id uuid,
    deferred_until_limit timestamptz,
    replay_id uuid,
    -- Counts re-arms from 1. Part of the archive's key.
    round integer not null default 1,
    attempt_count integer not null default 0,
    attempt_budget integer not null,
    filter_match_us integer,
    state text not null default 'pending',
    state_reason text,
    leased_by text,
    last_error_class text,
    ordering_key text,
    -- The subscription's retry policy as it was when this round began. Null stands
    -- for hookstead.default_retry_policy(), which never changes: spelled out it
    -- would be a twelfth of all that is written for an event.
    policy jsonb,
    constraint live_deliveries_pkey primary key (delivery_id),
    constraint live_deliveries_state_known check (state in ('pending', 'leased')),
    constraint live_deliveries_lease_whole check (
        num_nonnulls(lease_id, lease_expires_at, leased_by) = case state when 'leased' then 3 else 0 end),
    constraint live_deliveries_round_range check (round >= 1),
    constraint live_deliveries_budget_covers_attempts check (
        attempt_budget >= 1 and attempt_count between 0 and attempt_budget),
    constraint live_deliveries_attempted_whole check ((attempt_count > 0) = (last_attempt_at is not null)),
    constraint live_deliveries_policy_shape check (jsonb_typeof(policy) = 'object'),
    constraint live_deliveries_filter_match_us_range check (filter_match_us >= 0),
    constraint live_deliveries_state_reason_shape check (state_reason ~ '^[a-z][a-z0-9_]{0,63}$'),
    constraint live_deliveries_last_error_class_shape check (last_error_class ~ '^[a-z][a-z0-9_]{0,63}$'),
    constraint live_deliveries_leased_by_length check (char_length(leased_by) between 1 and 256),
    constraint live_deliveries_ordering_key_length check (char_length(ordering_key) between 1 and 512)
) with (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.0,
    autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_analyze_scale_factor = 0.0,
    autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
-- What the relay looks for: due deliveries, and leases that ran out.
create index live_deliveries_pending_idx on hookstead.live_deliveries (next_attempt_at) where state = 'pending';
create index live_deliveries_leased_idx on hookstead.live_deliveries (lease_expires_at) where state = 'leased';

-- The archive: one row per delivery and round, written once when it ends.
create table hookstead.done_deliveries (
    delivery_id uuid not null,
    event_id uuid not null,
    subscription_id uuid not null,
    created_at timestamptz not null,
    last_attempt_at timestamptz,
    terminal_at timestamptz not null default now(),
    replay_id uuid,
    round integer not null,
    attempt_count integer not null,
    attempt_budget integer not null,
    filter_match_us integer,
    state text not null,
    state_reason text,
    last_error_class text,
    ordering_key text,
    policy jsonb,
    constraint done_deliveries_pkey primary key (delivery_id, round),
    constraint done_deliveries_state_known check (state in ('succeeded', 'skipped', 'dead_letter', 'cancelled')),
    -- Whatever did not simply succeed says why.
    constraint done_deliveries_reason_given check (state = 'succeeded' or state_reason is not null),
    constraint done_deliveries_round_range check (round >= 1),
    constraint done_deliveries_budget_covers_attempts check (
        attempt_budget >= 1 and attempt_count between 0 and attempt_budget),
    constraint done_deliveries_success_was_attempted check (state <> 'succeeded' or attempt_count > 0),
    constraint done_deliveries_attempted_whole check ((attempt_count > 0) = (last_attempt_at is not null)),
    constraint done_deliveries_policy_shape check (jsonb_typeof(policy) = 'object'),
    constraint done_deliveries_filter_match_us_range check (filter_match_us >= 0),
    constraint done_deliveries_state_reason_shape check (state_reason ~ '^[a-z][a-z0-9_]{0,63}$'),
    constraint done_deliveries_last_error_class_shape check (last_error_class ~ '^[a-z][a-z0-9_]{0,63}$'),
    constraint done_deliveries_ordering_key_length check (char_length(ordering_key) between 1 and 512)
) partition by range (delivery_id);
-- A dead letter is a state, found by subscription and time.
create index done_deliveries_dead_letter_idx on hookstead.done_deliveries (subscription_id, terminal_at)
    where state = 'dead_letter';

-- One row per try. Append-only.
create table hookstead.attempts (
    delivery_id uuid not null,
    round integer not null,
    attempt_number integer not null,
    started_at timestamptz not null,
    ended_at timestamptz not null,
    latency_ms integer,
    status_code integer,
    outcome text not null,
    error_class text,
    -- Scrubbed before it comes here: no body, header, secret or personal data.
    error_detail text,
    response_sha256 bytea,
    response_headers jsonb,
    partner_request_id text,
    worker_id text,
    region text,
    constraint attempts_pkey primary key (delivery_id, round, attempt_number),
    constraint attempts_number_range check (round >= 1 and attempt_number >= 1),
    constraint attempts_times_ordered check (ended_at >= started_at),
    constraint attempts_outcome_known check (outcome in ('success', 'skip', 'defer', 'retry', 'fail')),
    constraint attempts_error_class_given check (outcome in ('success', 'skip', 'defer') or error_class is not null),
    constraint attempts_error_class_shape check (error_class ~ '^[a-z][a-z0-9_]{0,63}$'),
    constraint attempts_error_detail_length check (char_length(error_detail) <= 2048),
    constraint attempts_status_code_range check (status_code between 100 and 599),
    constraint attempts_latency_range check (latency_ms >= 0),
    constraint attempts_response_sha256_length check (octet_length(response_sha256) = 32),
    constraint attempts_response_headers_shape check (jsonb_typeof(response_headers) = 'object'),
    constraint attempts_partner_request_id_length check (char_length(partner_request_id) <= 256),
    constraint attempts_worker_id_length check (char_length(worker_id) <= 256),
    constraint attempts_region_length check (char_length(region) between 1 and 64)
) partition by range (delivery_id);
