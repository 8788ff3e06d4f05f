--- A session as this Neovim knows it: one object for each session that something
--- shows, kept up to date by the events of the server. Views watch it and draw; they
--- ask for nothing that is here.
local bus = require("convls.bus")
local config = require("convls.config")
local errors = require("convls.errors")
local server = require("convls.server")

local M = {}

--- What a watcher is told:
---   loaded  all is new: the first snapshot, or one after a reset
---   rows    `rows` is another list, of rows that are partly the same
---   row     a row has other content; its id comes with it
---   delta   text came to the end of a part of a row: { id, part, text, kind }
---   state   title, model, budget, queue, running turns or the connection changed
---   event   an event of the server, after it was taken in
---   gone    the session was deleted
---@alias convls.Watcher fun(what: "loaded"|"rows"|"row"|"delta"|"state"|"event"|"gone", data: any)

---@class convls.Session
---@field id string
---@field info? convls.protocol.Session
---@field branches convls.protocol.Branch[]
---@field rows convls.protocol.Row[] a window on HEAD's branch, oldest first
---@field before? string the cursor of the window before, or nil at the beginning
---@field head? string
---@field queue convls.protocol.QueuedSend[]
---@field running table<string, boolean> the replies whose turns run
---@field compaction? convls.protocol.RunningCompaction
---@field auto_compaction? string why automatic compaction does not run
---@field cursor? string
---@field revision integer grows with every change of what the graph shows
---@field connected boolean
---@field expanded string[] the summaries whose covered turns are shown, as ghosts
local Session = {}
Session.__index = Session

local sessions = {} ---@type table<string, convls.Session>

--- Returns the session with this id, and follows it from now on. It may not be loaded
--- yet: `info` is nil until the watchers hear "loaded".
---@param id string
---@return convls.Session
function M.get(id)
  local self = sessions[id]
  if self then
    return self
  end
  self = setmetatable({
    id = id,
    branches = {},
    rows = {},
    queue = {},
    running = {},
    revision = 0,
    connected = false,
    watchers = {},
    serial = 0,
    changes = 0,
    held = {},
    expanded = {},
  }, Session)
  sessions[id] = self
  self.off = {
    bus.on(id, function(what, payload)
      self["on_" .. what](self, payload)
    end),
    bus.on(bus.SERVER, function(what)
      if what == "lost" then
        self.connected = false
        self.running = {}
        self:tell("state")
      elseif what == "ready" and self.cursor then
        self:resume()
      elseif what == "ready" and not self.opening then
        self:open()
      end
    end),
  }
  self:open()
  return self
end

--- Calls `watcher` for every change until the returned function is called. When the
--- last one leaves the session is let go.
---@param watcher convls.Watcher
---@return fun() off
function Session:watch(watcher)
  self.serial = self.serial + 1
  local key = self.serial
  self.watchers[key] = watcher
  return function()
    self.watchers[key] = nil
    if next(self.watchers) == nil then
      self:release()
    end
  end
end

function Session:release()
  if sessions[self.id] ~= self then
    return
  end
  sessions[self.id] = nil
  for _, off in ipairs(self.off) do
    off()
  end
  if self.connected then
    server.request("convls/session/unsubscribe", { session_id = self.id }, function() end)
  end
end

function Session:tell(what, data)
  bus.tell(self.watchers, what, data)
end

--- Takes a snapshot and follows the session from there.
function Session:open()
  self.opening = true
  server.request(
    "convls/session/open",
    { session_id = self.id, subscribe = true, tail = config.get().tail },
    function(err, result)
      self.opening = false
      if err then
        self.failure = err
        self:tell("state")
        if errors.code(err) ~= errors.SERVER_LOST and errors.code(err) ~= errors.NO_SERVER then
          errors.show(err, "opening the session")
        end
        return
      end
      self.failure = nil
      self.connected = true
      self:take_info(result)
      self.cursor = result.cursor
      self.rows = result.transcript.rows
      self.before = result.transcript.before
      self.changes = self.changes + 1
      self:tell("loaded")
      if #self.expanded > 0 then
        self:refresh_rows()
      end
    end
  )
end

--- Follows on after a break, from the last event that came.
function Session:resume()
  server.request("convls/session/subscribe", { session_id = self.id, after = self.cursor }, function(err, result)
    if err then
      return errors.show(err, "following the session again")
    end
    if result.reset then
      return self:open()
    end
    self.connected = true
    -- What the dead server was writing is sealed by now, and its events follow.
    self:refresh_info()
  end)
end

---@param result convls.protocol.SessionOpenResult
function Session:take_info(result)
  self.info = result.session
  self.head = result.session.head
  self.branches = result.branches
  self.queue = result.queue
  self.compaction = result.compaction
  self.auto_compaction = result.auto_compaction
  self.running = {}
  for _, open in ipairs(result.open_nodes) do
    self.running[open.node_id] = true
  end
end

-- coalesced returns a function that runs `ask` at most once at a time: what is asked
-- for meanwhile is done once after it.
local function coalesced(name, ask)
  local busy, again = name .. "_busy", name .. "_again"
  local function run(self)
    if not self.connected then
      return
    end
    if self[busy] then
      self[again] = true
      return
    end
    self[busy], self[again] = true, false
    ask(self, function()
      self[busy] = false
      if self[again] then
        run(self)
      end
    end)
  end
  return run
end

--- Asks for title, model, budget, usage, queue and running turns anew.
Session.refresh_info = coalesced("info", function(self, done)
  server.request("convls/session/open", { session_id = self.id, tail = 1 }, function(err, result)
    if not err then
      self:take_info(result)
      self:tell("state")
    end
    done()
  end)
end)

local chain = { root = true, user = true, assistant = true, attach = true }

-- How many chain nodes are loaded, but for those that a summary stands for.
local function loaded(self)
  local count = 0
  for _, row in ipairs(self.rows) do
    if chain[row.kind] and not row.ghost then
      count = count + 1
    end
  end
  return count
end

--- How many chain nodes one request brings at most (docs/protocol.md).
local MOST = 500

--- Asks for the end of the transcript anew, and puts it in the place of what is there.
Session.refresh_rows = coalesced("rows", function(self, done)
  local changes, all, tail = self.changes, self.all, config.get().tail
  self.all = false
  server.request("convls/transcript/get", {
    session_id = self.id,
    limit = all and math.min(MOST, loaded(self) + tail) or tail,
    expanded = self:shown(),
  }, function(err, result)
    if err then
      if errors.code(err) ~= errors.SERVER_LOST then
        errors.show(err, "reading the transcript")
      end
    elseif changes ~= self.changes then
      -- The reply may be older than what the events have said since.
      self.rows_again, self.all = true, self.all or all
    else
      self:merge(result, all)
    end
    done()
  end)
end)

--- Asks for all that is loaded anew: what is far above the end may have changed too, as
--- it does when a summary comes to stand for it.
function Session:refresh_all()
  self.all = true
  self.changes = self.changes + 1
  self:refresh_rows()
end

-- The expanded summaries as a request takes them: Lua can not tell an empty list from
-- an empty object.
function Session:shown()
  return #self.expanded > 0 and self.expanded or nil
end

--- Shows what a summary stands for, or hides it again.
---@param id string
function Session:toggle(id)
  for i, expanded in ipairs(self.expanded) do
    if expanded == id then
      table.remove(self.expanded, i)
      return self:refresh_all()
    end
  end
  self.expanded[#self.expanded + 1] = id
  self:refresh_all()
end

--- Puts a window that ends at HEAD in the place of the rows from its first row on.
---@param window convls.protocol.Transcript
---@param all? boolean in the place of all rows
function Session:merge(window, all)
  local first = window.rows[1]
  local at = not all and first and self:index(first.id)
  if at and window.before then
    local rows = vim.list_slice(self.rows, 1, at - 1)
    vim.list_extend(rows, window.rows)
    self.rows = rows
  else
    self.rows, self.before = window.rows, window.before
  end
  self.head = window.head
  self.held = {}
  self:tell("rows")
end

--- Loads the window before the first row. `done` is called with whether rows came.
---@param done? fun(came: boolean)
---@param limit? integer how many chain nodes; the setting `tail` if it is left out
function Session:load_before(done, limit)
  done = done or function() end
  if not self.before or self.loading_before or not self.connected then
    return done(false)
  end
  self.loading_before = true
  local before, first = self.before, self.rows[1]
  server.request(
    "convls/transcript/get",
    { session_id = self.id, before = before, limit = limit or config.get().tail, expanded = self:shown() },
    function(err, window)
      self.loading_before = false
      -- If another branch came meanwhile, this window is not its beginning.
      if err or self.before ~= before or self.rows[1] ~= first then
        return done(false)
      end
      local rows = window.rows
      vim.list_extend(rows, self.rows)
      self.rows, self.before = rows, window.before
      self:tell("rows")
      done(true)
    end
  )
end

--- Returns the place of a row, or nil.
---@param id string
---@return integer?
function Session:index(id)
  for i = #self.rows, 1, -1 do
    if self.rows[i].id == id then
      return i
    end
  end
end

--- Returns a row, or nil.
---@param id string
---@return convls.protocol.Row?
function Session:row(id)
  local i = self:index(id)
  return i and self.rows[i] or nil
end

--- Makes a node one of the rows: loads what is before them, and shows what a summary
--- stands for. `done` is called with whether it is there.
---@param id string
---@param done fun(there: boolean)
function Session:reveal(id, done)
  if self:index(id) then
    return done(true)
  end
  local folded
  for _, row in ipairs(self.rows) do
    if row.kind == "summary" and row.fold and row.fold.state == "folded" then
      folded = row.id
    end
  end
  local function again(came)
    if came then
      self:reveal(id, done)
    else
      done(self:index(id) ~= nil)
    end
  end
  if folded and not vim.tbl_contains(self.expanded, folded) then
    local off
    off = self:watch(function(what)
      if what == "rows" or what == "gone" or (what == "state" and not self.connected) then
        off()
        again(what == "rows")
      end
    end)
    return self:toggle(folded)
  end
  self:load_before(again, MOST)
end

--- Returns the last row of a kind, or of the chain where no kind is named.
---@param kind? convls.protocol.Kind
---@return convls.protocol.Row?
function Session:last(kind)
  for i = #self.rows, 1, -1 do
    local row = self.rows[i]
    if row.kind == kind or (not kind and chain[row.kind]) then
      return row
    end
  end
end

---@param reset convls.protocol.ResetNotification
function Session:on_reset(reset)
  self.cursor = reset.cursor or self.cursor
  self:open()
end

local ends = {
  turn_finished = "ConvlsTurnFinished",
  turn_failed = "ConvlsTurnFailed",
  turn_cancelled = "ConvlsTurnCancelled",
  turn_interrupted = "ConvlsTurnInterrupted",
}

-- After these any of the rows may be others, in ways that the event does not tell.
local rows_change = {
  branch_deleted = true,
  node_pinned = true,
  node_unpinned = true,
  node_redacted = true,
  summary_activated = true,
  compaction_finished = true,
}

-- After these title, model, queue, budget or branches may be others.
local info_changes = {
  session_changed = true,
  model_changed = true,
  queue_changed = true,
  turn_queued = true,
  branch_changed = true,
  branch_deleted = true,
  summary_activated = true,
  compaction_started = true,
  compaction_finished = true,
  compaction_failed = true,
  compaction_cancelled = true,
}

---@param event convls.protocol.Event
function Session:on_event(event)
  self.cursor = event.cursor
  self.revision = math.max(self.revision, event.revision or 0)
  if event.node then
    self:take_node(event.type, event.node)
  end
  if event.type == "turn_started" then
    self.running[event.reply_id] = true
    bus.autocmd("ConvlsTurnStarted", { session_id = self.id, reply_id = event.reply_id })
    self:tell("state")
  elseif ends[event.type] then
    self.running[event.reply_id or ""] = nil
    self.running[event.node_id or ""] = nil
    bus.autocmd(ends[event.type], { session_id = self.id, reply_id = event.reply_id, node_id = event.node_id })
    self:tell("state")
    self:refresh_info()
  elseif event.type == "head_moved" then
    self.head = event.head
    local last = self:last()
    if not last or last.id ~= event.head then
      -- Another branch; where summaries stand, they may not stand there.
      self.changes = self.changes + 1
      self.all = self.all or (self.info and #self.info.active_summaries > 0)
      self:refresh_rows()
      self:refresh_info()
    end
    bus.autocmd("ConvlsHeadMoved", { session_id = self.id, head = event.head, cause = event.cause })
  elseif event.type == "compaction_finished" then
    bus.autocmd("ConvlsCompacted", { session_id = self.id, summary_id = event.summary_id })
  elseif event.type == "session_deleted" then
    self:tell("gone")
  end
  if rows_change[event.type] then
    self:refresh_all()
  end
  if info_changes[event.type] then
    self:refresh_info()
  end
  self:tell("event", event)
end

--- Takes a node that was written or sealed.
function Session:take_node(type, node)
  local at = self:index(node.id)
  if at then
    local row = vim.tbl_extend("force", self.rows[at], node)
    self.rows[at] = row
    self.held[node.id] = nil
    self.changes = self.changes + 1
    return self:tell("row", node.id)
  end
  if type ~= "node_appended" then
    return
  end
  local last = self:last()
  local place
  if chain[node.kind] and last and node.predecessor == last.id then
    place = #self.rows + 1
  elseif node.kind == "tool" and node.caller then
    place = self:index(node.caller)
    while place and self.rows[place + 1] and self.rows[place + 1].caller == node.caller do
      place = place + 1
    end
    place = place and place + 1
  elseif chain[node.kind] and node.predecessor and self:index(node.predecessor) then
    -- A sibling of something that is shown.
    self.changes = self.changes + 1
    return self:refresh_rows()
  end
  if place then
    local row = vim.tbl_extend("keep", { on_head = true, in_context = true, preview = "", actions = {} }, node)
    table.insert(self.rows, place, row)
    self.changes = self.changes + 1
    self:tell("rows")
  end
end

local part_of = { text = "text", reasoning = "reasoning", tool_args = "tool_call" }

---@param delta convls.protocol.Delta
function Session:on_delta(delta)
  local row = self:row(delta.node_id)
  if not row or self.held[delta.node_id] then
    -- What is held comes with the node that was asked for.
    return
  end
  local content = row.content
  for i = #content + 1, delta.part + 1 do
    content[i] = { type = part_of[delta.kind] or "text", text = "" }
  end
  local part = content[delta.part + 1]
  local text = part.text or ""
  if delta.offset > #text then
    return self:fill(delta.node_id)
  end
  local piece = delta.text:sub(#text - delta.offset + 1)
  if piece == "" then
    return
  end
  part.text = text .. piece
  self:tell("delta", { id = delta.node_id, part = delta.part + 1, text = piece, kind = delta.kind })
end

--- Asks for a node of which deltas were lost.
function Session:fill(id)
  self.held[id] = true
  server.request("convls/node/get", { session_id = self.id, node_id = id }, function(err, node)
    self.held[id] = nil
    local at = self:index(id)
    if err or not at then
      return
    end
    self.rows[at] = vim.tbl_extend("force", self.rows[at], node)
    self:tell("row", id)
  end)
end

--- Asks for a change, with a request_id, so that a repeat changes nothing. Where HEAD
--- is not at `expected_head` because this Neovim itself has just moved it, and the
--- event of that is still on its way, the change is asked for again.
---@param method convls.protocol.Method
---@param params table
---@param callback fun(err?: convls.Error, result?: any)
function Session:change(method, params, callback)
  params.session_id = self.id
  params.request_id = params.request_id or server.request_id()
  server.request(method, params, function(err, result)
    if errors.code(err) == "stale_head" then
      local origin, head = err.data.origin, err.data.head
      local own = origin and origin.client_id == server.client_id()
      if own and head and head ~= params.expected_head then
        params.expected_head, params.request_id = head, server.request_id()
        return self:change(method, params, callback)
      end
      self:refresh_rows()
      self:refresh_info()
    elseif result and result.head then
      self.head = result.head
    end
    callback(err, result)
  end)
end

return M
