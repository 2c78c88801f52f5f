-- Small tables that one side writes in its own transaction and another drains,
-- and the records of what operators did.
set local role hookstead_owner;

-- Events that a business application announces in its own transaction.
create table hookstead.outbox (
    outbox_id uuid primary key default gen_random_uuid(),
    source_id uuid not null references hookstead.sources (source_id),
    aggregate_type text not null,
    aggregate_id text not null,
    event_type text not null,
    payload bytea not null,
    content_type text not null default 'application/json',
    schema_version text not null default '1',
    tenant text,
    idempotency_key text,
    occurred_at timestamptz not null default now(),
    cause_event_id uuid,
    created_at timestamptz not null default now(),
    constraint outbox_aggregate_length check (
        char_length(aggregate_type) between 1 and 128 and char_length(aggregate_id) between 1 and 512),
    constraint outbox_event_type_length check (char_length(event_type) between 1 and 256),
    constraint outbox_payload_size check (octet_length(payload) <= 6291456),
    constraint outbox_content_type_length check (char_length(content_type) between 1 and 1024),
    constraint outbox_schema_version_length check (char_length(schema_version) between 1 and 64),
    constraint outbox_tenant_length check (char_length(tenant) between 1 and 128),
    constraint outbox_idempotency_key_length check (
        char_length(idempotency_key) <= 512 and btrim(idempotency_key, E' \t\r\n') <> '')
) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);
create index outbox_created_at_idx on hookstead.outbox (created_at);

-- Status records for the control plane: a closed set of facts, no free text, no
-- payload. Deleted once acknowledged.
create table hookstead.reports (
    report_id uuid primary key,
    schema_version integer not null,
    instance_id uuid not null,
    job_id uuid not null,
    status text not null,
    attempt_count integer not null,
    duration_ms bigint,
    error_class text,
    processed_at timestamptz not null,
    -- Only where the source opted in.
    provider text,
    event_type text,
    created_at timestamptz not null default now(),
    constraint reports_schema_version_range check (schema_version >= 1),
    constraint reports_status_known check (status in ('succeeded', 'skipped', 'retrying', 'dead_letter', 'cancelled')),
    constraint reports_attempt_count_range check (attempt_count >= 0),
    constraint reports_duration_range check (duration_ms >= 0),
    constraint reports_error_class_shape check (error_class ~ '^[a-z][a-z0-9_]{0,63}$'),
    constraint reports_provider_shape check (provider ~ '^[a-z0-9][a-z0-9_.-]{0,63}$'),
    constraint reports_event_type_length check (char_length(event_type) between 1 and 256),
    constraint reports_event_type_with_provider check ((provider is null) = (event_type is null))
) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);

-- Dead letters the relay still has to announce.
create table hookstead.dead_letter_notices (
    delivery_id uuid not null,
    round integer not null,
    event_id uuid not null,
    subscription_id uuid not null,
    state_reason text not null,
    created_at timestamptz not null default now(),
    constraint dead_letter_notices_pkey primary key (delivery_id, round),
    constraint dead_letter_notices_round_range check (round >= 1),
    constraint dead_letter_notices_state_reason_shape check (state_reason ~ '^[a-z][a-z0-9_]{0,63}$')
) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);

create table hookstead.replays (
    replay_id uuid primary key default gen_random_uuid(),
    filter jsonb not null,
    requested_by text not null,
    reason text not null,
    rate_limit_per_s integer,
    matched bigint,
    rearmed bigint not null default 0,
    state text not null default 'previewed',
    created_at timestamptz not null default now(),
    started_at timestamptz,
    ended_at timestamptz,
    constraint replays_filter_shape check (jsonb_typeof(filter) = 'object'),
    constraint replays_requested_by_length check (char_length(requested_by) between 1 and 256),
    constraint replays_reason_length check (char_length(reason) between 1 and 1024),
    constraint replays_rate_limit_range check (rate_limit_per_s between 1 and 100000),
    constraint replays_counts_range check (matched >= 0 and rearmed >= 0),
    constraint replays_state_known check (state in ('previewed', 'running', 'paused', 'done', 'cancelled')),
    constraint replays_started_when_running check (state not in ('running', 'paused', 'done') or started_at is not null),
    constraint replays_ended_when_over check ((state in ('done', 'cancelled')) = (ended_at is not null))
);

-- Who changed or read what. Append-only for everyone.
create table hookstead.operator_actions (
    action_id uuid primary key default gen_random_uuid(),
    at timestamptz not null default now(),
    actor text not null,
    action text not null,
    target_kind text not null,
    target_id text not null,
    reason text,
    detail jsonb not null default '{}',
    constraint operator_actions_actor_length check (char_length(actor) between 1 and 256),
    constraint operator_actions_action_shape check (action ~ '^[a-z][a-z0-9_.]{0,63}$'),
    constraint operator_actions_target_length check (
        char_length(target_kind) between 1 and 64 and char_length(target_id) between 1 and 256),
    constraint operator_actions_reason_length check (char_length(reason) <= 1024),
    constraint operator_actions_detail_shape check (jsonb_typeof(detail) = 'object')
);
create index operator_actions_at_idx on hookstead.operator_actions (at);

-- Requests that were refused and that an operator wants to look at. Off by
-- default, bounded in size and in time; nothing is delivered from here.
create table hookstead.quarantine (
    quarantine_id uuid primary key default gen_random_uuid(),
    source_id uuid not null,
    received_at timestamptz not null,
    expires_at timestamptz not null,
    reason text not null,
    content_type text,
    headers jsonb not null,
    raw_body bytea not null,
    constraint quarantine_expires_within_30_days check (
        expires_at > received_at and expires_at <= received_at + interval '720 hours'),
    constraint quarantine_reason_shape check (reason ~ '^[a-z][a-z0-9_]{0,63}$'),
    constraint quarantine_content_type_length check (char_length(content_type) <= 1024),
    constraint quarantine_headers_shape check (jsonb_typeof(headers) in ('array', 'object')),
    constraint quarantine_raw_body_size check (octet_length(raw_body) <= 1048576)
);
create index quarantine_expires_at_idx on hookstead.quarantine (expires_at);
