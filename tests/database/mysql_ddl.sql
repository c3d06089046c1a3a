CREATE TABLE agent_step (
	id BIGINT NOT NULL,
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	session_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	step_key VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the client''s id of the step',
	parent_step_key VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin COMMENT 'the step that it runs under',
	step_index BIGINT NOT NULL COMMENT 'from 0, over all agents of the diagnosis',
	agent_name VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'never ABANDONED: that is shown' DEFAULT 'PENDING',
	has_tool_call BOOL NOT NULL DEFAULT 0,
	duration_ms BIGINT,
	duration_flagged BOOL NOT NULL COMMENT 'it was impossible as given' DEFAULT 0,
	token_count BIGINT COMMENT 'NULL where the model did not tell',
	input_tokens BIGINT COMMENT 'the cached ones among them',
	cached_tokens BIGINT,
	output_tokens BIGINT,
	cost_micros BIGINT COMMENT 'in millionths of a US dollar',
	model VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	provider VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	started_at DATETIME(6),
	ended_at DATETIME(6),
	created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
	updated_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
	merged_from LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	error_message LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	thought LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	model_input JSON COMMENT 'a summary, not the whole messages',
	model_output JSON COMMENT 'a summary, not the whole message',
	PRIMARY KEY (id),
	CONSTRAINT agent_step_key UNIQUE (space_id, session_id, step_key)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='The steps of diagnoses: each one call of a model by one agent.' COLLATE utf8mb4_bin;
CREATE INDEX agent_step_by_change ON agent_step (space_id, updated_at, id);
CREATE INDEX agent_step_by_creation ON agent_step (space_id, created_at, id);
CREATE INDEX idx_agent_name ON agent_step (space_id, agent_name, created_at);
CREATE INDEX idx_session_step ON agent_step (space_id, session_id, step_index, id);
CREATE TABLE arriving_session (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	session_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	origin CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the incarnation that it will be',
	heard_at DATETIME(6) NOT NULL COMMENT 'when the import last brought something',
	PRIMARY KEY (space_id, session_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='Sessions that an import is bringing; their spans are there, their rows come last.' COLLATE utf8mb4_bin;
CREATE INDEX arriving_session_by_age ON arriving_session (heard_at);
CREATE TABLE broken_group (
	origin CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	seq BIGINT NOT NULL,
	PRIMARY KEY (origin, seq)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='Records of tool-call groups that were never completed, so that forks leave them out.' COLLATE utf8mb4_bin;
CREATE TABLE context_slot (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	session_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	slot VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'systemPrompt, insight or memory',
	content LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin COMMENT 'NULL is unset, which is not empty',
	version BIGINT NOT NULL,
	updated_at DATETIME(6) NOT NULL,
	PRIMARY KEY (space_id, session_id, slot)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='The context slots of sessions.' COLLATE utf8mb4_bin;
CREATE TABLE deleted_session (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	session_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	deleted_at DATETIME(6) NOT NULL,
	PRIMARY KEY (space_id, session_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='Sessions that were deleted, until the sweep has dealt with what tells of them.' COLLATE utf8mb4_bin;
CREATE INDEX deleted_session_by_age ON deleted_session (deleted_at);
CREATE TABLE diagnosis_feedback (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	session_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	source VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	value VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'useful or not_useful',
	updated_at DATETIME(6) NOT NULL COMMENT 'when it was said',
	event_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'of two words of one moment, the greater one stands',
	comment LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	PRIMARY KEY (space_id, session_id, source)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='What each source says of a diagnosis.' COLLATE utf8mb4_bin;
CREATE TABLE diagnosis_session (
	id BIGINT NOT NULL,
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	session_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'never ABANDONED: that is shown' DEFAULT 'PENDING',
	agent_flow VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin COMMENT 'such as CHAT or AI_OPS',
	conversation_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin COMMENT 'the session whose conversation it belongs to',
	total_duration_ms BIGINT COMMENT 'wall clock',
	duration_flagged BOOL NOT NULL COMMENT 'it ended before it started' DEFAULT 0,
	total_token_count BIGINT COMMENT 'of its own steps; NULL where none tells',
	steps_with_tokens BIGINT NOT NULL DEFAULT 0,
	total_cost_micros BIGINT COMMENT 'in millionths of a US dollar',
	step_count BIGINT NOT NULL DEFAULT 0,
	tool_call_count BIGINT NOT NULL DEFAULT 0,
	confidence BIGINT COMMENT '0 to 100, copied from self_evaluation',
	feedback VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin COMMENT 'useful, not_useful; the latest of all sources',
	started_at DATETIME(6),
	ended_at DATETIME(6),
	last_heard_at DATETIME(6) NOT NULL COMMENT 'the server''s time of its last event',
	created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
	updated_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
	merged_from LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	error_message LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	self_evaluation JSON,
	query LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT diagnosis_session_key UNIQUE (space_id, session_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='One row per diagnosis; its lock orders all that is merged into it.' COLLATE utf8mb4_bin;
CREATE INDEX diagnosis_session_by_change ON diagnosis_session (space_id, updated_at, id);
CREATE INDEX diagnosis_session_by_conversation ON diagnosis_session (space_id, conversation_id, created_at, id);
CREATE INDEX diagnosis_session_by_feedback ON diagnosis_session (space_id, feedback, created_at, id);
CREATE INDEX idx_agent_flow ON diagnosis_session (space_id, agent_flow, created_at, id);
CREATE INDEX idx_created_at ON diagnosis_session (space_id, created_at, id);
CREATE INDEX idx_status ON diagnosis_session (space_id, status, created_at, id);
CREATE TABLE history_span (
	owner_origin CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	first_seq BIGINT NOT NULL,
	origin CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	last_seq BIGINT NOT NULL COMMENT '2^63-1 while the span still grows',
	PRIMARY KEY (owner_origin, first_seq)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='Which records a session shows: ranges of seqs over origins, its own last.' COLLATE utf8mb4_bin;
CREATE INDEX history_span_by_origin ON history_span (origin, first_seq, last_seq);
CREATE TABLE node_ref (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	node_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	target_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	created_at DATETIME(6) NOT NULL,
	PRIMARY KEY (space_id, node_id, target_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='References across the forest, beside parent and child.' COLLATE utf8mb4_bin;
CREATE INDEX node_ref_by_target ON node_ref (space_id, target_id, node_id);
CREATE TABLE record (
	origin CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	seq BIGINT NOT NULL,
	`role` VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'SYSTEM, USER, ASSISTANT or TOOL',
	content LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	parts_json LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	tool_calls_json LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	tool_call_id VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	name VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	client_time VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
	metadata_json LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	size_bytes BIGINT NOT NULL COMMENT 'all its text, in bytes of UTF-8',
	created_at DATETIME(6) NOT NULL,
	erased_at DATETIME(6),
	PRIMARY KEY (origin, seq)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='Records under the session incarnation that wrote them; immutable but for erasure.' COLLATE utf8mb4_bin;
CREATE TABLE released_span (
	owner_origin CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	first_seq BIGINT NOT NULL,
	origin CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	last_seq BIGINT NOT NULL,
	released_at DATETIME(6) NOT NULL,
	PRIMARY KEY (owner_origin, first_seq)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='Ranges that a session, the owner, dropped; the sweep erases what no span needs.' COLLATE utf8mb4_bin;
CREATE INDEX released_span_by_age ON released_span (released_at);
CREATE TABLE request_log (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	service VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	request_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	method VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	body_hash CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	outcome_json LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	created_at DATETIME(6) NOT NULL,
	PRIMARY KEY (space_id, service, request_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='Requests that took effect, so that a repeated one does not again.' COLLATE utf8mb4_bin;
CREATE INDEX request_log_by_age ON request_log (created_at);
CREATE TABLE session (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	session_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	origin CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	label VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'ACTIVE or ARCHIVED',
	turn_count BIGINT NOT NULL,
	metadata_json LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	head_seq BIGINT NOT NULL,
	floor_seq BIGINT NOT NULL COMMENT 'records up to this seq are trimmed',
	max_record_bytes BIGINT NOT NULL COMMENT 'size of the largest record it ever showed',
	open_group_json LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin COMMENT 'the tool-call group that still lacks answers',
	version BIGINT NOT NULL,
	created_at DATETIME(6) NOT NULL,
	updated_at DATETIME(6) NOT NULL,
	last_active_at DATETIME(6) NOT NULL,
	PRIMARY KEY (space_id, session_id),
	CONSTRAINT session_origin UNIQUE (origin)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='One row per session; its lock orders all writes to the session.' COLLATE utf8mb4_bin;
CREATE INDEX session_by_activity ON session (space_id, last_active_at, session_id);
CREATE INDEX session_by_creation ON session (space_id, created_at, session_id);
CREATE INDEX session_by_label ON session (space_id, label, session_id);
CREATE TABLE session_removal (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	session_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	origin CHAR(32) CHARACTER SET ascii COLLATE ascii_bin COMMENT 'the incarnation that goes; NULL if there was none',
	requested_at DATETIME(6) NOT NULL,
	PRIMARY KEY (space_id, session_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='Sessions that go with their deleted nodes; the sweep finishes each.' COLLATE utf8mb4_bin;
CREATE INDEX session_removal_by_age ON session_removal (requested_at);
CREATE TABLE session_tag (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	session_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	tag VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	PRIMARY KEY (space_id, session_id, tag)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='The tags of sessions.' COLLATE utf8mb4_bin;
CREATE INDEX session_tag_by_tag ON session_tag (space_id, tag, session_id);
CREATE TABLE space (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	root_count BIGINT NOT NULL,
	created_at DATETIME(6) NOT NULL,
	tree_position BIGINT NOT NULL COMMENT 'of its last tree_change' DEFAULT 0,
	tree_floor BIGINT NOT NULL COMMENT 'changes up to here are forgotten' DEFAULT 0,
	PRIMARY KEY (space_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='One row per space; its lock orders moves and the indexes of roots.' COLLATE utf8mb4_bin;
CREATE TABLE swept_node (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	node_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	parent_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin COMMENT 'where it stood; NULL for a root',
	label VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	source_session_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin,
	config_version BIGINT NOT NULL,
	version BIGINT NOT NULL,
	created_at DATETIME(6) NOT NULL,
	swept_at DATETIME(6) NOT NULL,
	config_system_prompt LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	config_skills_json LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	PRIMARY KEY (space_id, node_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='Nodes whose content never came, for some days: if it comes after all, they come back.' COLLATE utf8mb4_bin;
CREATE INDEX swept_node_by_age ON swept_node (swept_at);
CREATE TABLE telemetry_event (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	event_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	body_hash CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	created_at DATETIME(6) NOT NULL,
	PRIMARY KEY (space_id, event_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='Events that were taken, to tell a repeated one from another under its id.' COLLATE utf8mb4_bin;
CREATE INDEX telemetry_event_by_age ON telemetry_event (created_at);
CREATE TABLE telemetry_producer (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	producer_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	committed_through_seq BIGINT NOT NULL DEFAULT 0,
	holder VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the newest stream of the producer',
	dropped_count BIGINT NOT NULL COMMENT 'events that the producer gave up' DEFAULT 0,
	updated_at DATETIME(6) NOT NULL,
	PRIMARY KEY (space_id, producer_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='How far each producer''s events are committed.' COLLATE utf8mb4_bin;
CREATE INDEX telemetry_producer_by_age ON telemetry_producer (updated_at);
CREATE TABLE tool_invocation (
	id BIGINT NOT NULL,
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	session_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	invocation_key VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the client''s id of the tool call',
	step_id BIGINT COMMENT 'agent_step.id, once that step has come',
	step_key VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin COMMENT 'the step that made it',
	tool_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	output_length BIGINT COMMENT 'characters of the whole output',
	retrieval_layer VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin COMMENT 'L0, L1 or L0+L1',
	l0_match_count BIGINT,
	l1_match_count BIGINT,
	is_truncated BOOL NOT NULL DEFAULT 0,
	duration_ms BIGINT,
	duration_flagged BOOL NOT NULL COMMENT 'it was impossible as given' DEFAULT 0,
	success BOOL NOT NULL DEFAULT 1,
	started_at DATETIME(6),
	ended_at DATETIME(6),
	created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
	updated_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
	merged_from LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	error_message LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	output_preview LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin COMMENT 'the first 500 characters',
	retrieval_details JSON,
	input_params JSON NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT tool_invocation_key UNIQUE (space_id, session_id, invocation_key)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='The tool calls of diagnoses.' COLLATE utf8mb4_bin;
CREATE INDEX idx_retrieval_layer ON tool_invocation (space_id, retrieval_layer, created_at, id);
CREATE INDEX idx_session_id ON tool_invocation (space_id, session_id, created_at, id);
CREATE INDEX idx_tool_name ON tool_invocation (space_id, tool_name, created_at, id);
CREATE INDEX tool_invocation_by_change ON tool_invocation (space_id, updated_at, id);
CREATE INDEX tool_invocation_by_creation ON tool_invocation (space_id, created_at, id);
CREATE INDEX tool_invocation_by_step ON tool_invocation (space_id, session_id, step_key);
CREATE TABLE topology_node (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	node_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	parent_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin COMMENT 'NULL for a root',
	depth BIGINT NOT NULL,
	`index` BIGINT NOT NULL COMMENT 'place among its siblings, from 0',
	child_count BIGINT NOT NULL,
	label VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	source_session_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin,
	awaits_content BOOL NOT NULL COMMENT 'hidden until its session exists',
	config_version BIGINT NOT NULL,
	version BIGINT NOT NULL,
	created_at DATETIME(6) NOT NULL,
	updated_at DATETIME(6) NOT NULL,
	config_system_prompt LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin COMMENT 'NULL is absent, which is not empty',
	config_skills_json LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin COMMENT 'NULL is absent, which is not an empty list',
	PRIMARY KEY (space_id, node_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='One row per node of the forest.' COLLATE utf8mb4_bin;
CREATE INDEX topology_node_by_depth ON topology_node (space_id, depth, parent_id, `index`);
CREATE INDEX topology_node_by_parent ON topology_node (space_id, parent_id, `index`, node_id);
CREATE INDEX topology_node_by_source ON topology_node (space_id, source_session_id, node_id);
CREATE INDEX topology_node_by_waiting ON topology_node (awaits_content, space_id, parent_id, created_at);
CREATE TABLE tree_change (
	space_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	position BIGINT NOT NULL COMMENT 'given under the lock of the space',
	kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'CREATED, UPDATED, MOVED or DELETED',
	node_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	changed_at DATETIME(6) NOT NULL,
	PRIMARY KEY (space_id, position)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='What became of the nodes that readers see, for some days, in the order of commits.' COLLATE utf8mb4_bin;
CREATE INDEX tree_change_by_age ON tree_change (changed_at);
