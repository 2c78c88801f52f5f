-- What happened, and the mark that says it was already recorded.
set local role hookstead_owner;

-- The deduplication constraint. Narrow: it is written for every event and kept
-- longer than the events are. No foreign key to sources: checking one would lock
-- the source's row for every event; the statement that writes here has read it.
create table hookstead.event_keys (
    source_id uuid not null,
    external_event_id text not null,
    event_id uuid not null,
    constraint event_keys_pkey primary key (source_id, external_event_id),
    -- 512 characters of four bytes still fit an index entry. A blank id is no id:
    -- the first one would swallow all that follow.
    constraint event_keys_external_event_id_shape check (
        char_length(external_event_id) <= 512 and btrim(external_event_id, E' \t\r\n') <> '')
);
-- Rows leave in bulk when their window ends; until then the table only grows.
alter table hookstead.event_keys set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- Partitioned by the day in the id. Append-only: nothing updates an event. One
-- index, because every index is paid for by every event.
create table hookstead.events (
    event_id uuid not null,
    source_id uuid not null,
    received_at timestamptz not null,
    occurred_at timestamptz,
    cause_event_id uuid,
    signature_verified boolean not null,
    external_event_id text not null,
    idempotency_key text,
    event_type text not null,
    tenant text,
    schema_version text not null,
    content_type text,
    payload_error text,
    -- The label of the secret's version that verified, never the secret.
    verified_with text,
    region text,
    headers jsonb not null,
    -- The body as it was parsed, for queries and filters. Null when there is
    -- nothing to parse or when payload_error says why it could not be.
    payload jsonb,
    -- The body as it arrived, to the byte.
    raw_body bytea not null,
    constraint events_pkey primary key (event_id),
    constraint events_event_id_version check (substring(uuid_send(event_id), 7, 1) between '\x70' and '\x7f'),
    constraint events_external_event_id_length check (char_length(external_event_id) between 1 and 512),
    constraint events_idempotency_key_length check (char_length(idempotency_key) between 1 and 512),
    constraint events_event_type_length check (char_length(event_type) between 1 and 256),
    constraint events_tenant_length check (char_length(tenant) between 1 and 128),
    constraint events_schema_version_length check (char_length(schema_version) between 1 and 64),
    constraint events_content_type_length check (char_length(content_type) <= 1024),
    constraint events_payload_error_shape check (payload_error ~ '^[a-z][a-z0-9_]{0,63}$'),
    constraint events_payload_or_error check (payload is null or payload_error is null),
    constraint events_verified_with_shape check (
        verified_with is null or signature_verified and char_length(verified_with) between 1 and 128),
    constraint events_region_length check (char_length(region) between 1 and 64),
    constraint events_headers_shape check (jsonb_typeof(headers) in ('array', 'object'))
) partition by range (event_id);

-- Everything is compressed in place before anything moves out of line: a common
-- body then needs no second table and no second index entry. All variable columns,
-- because the short ones left as they were would be moved out first. lz4 where the
-- server was built with it, for its speed.
do $$
declare
    has_lz4 boolean := exists (
        select from pg_catalog.pg_settings
        where name = 'default_toast_compression' and 'lz4' = any (enumvals));
    name text;
begin
    for name in
        select attname from pg_catalog.pg_attribute
        where attrelid = 'hookstead.events'::regclass and attnum > 0 and attlen = -1
    loop
        execute format('alter table hookstead.events alter column %I set storage main', name);
        if has_lz4 then
            execute format('alter table hookstead.events alter column %I set compression lz4', name);
        end if;
    end loop;
end
$$;
