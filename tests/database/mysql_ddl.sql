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
	PRIMARY KEY (space_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COMMENT='One row per space; its lock orders moves and the indexes of roots.' COLLATE utf8mb4_bin;
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
