--- Chats: one for each session that is open in this Neovim. A chat joins the session
--- with its view, and is what the actions work on.
local attach = require("convls.chat.attach")
local bus = require("convls.bus")
local config = require("convls.config")
local errors = require("convls.errors")
local highlight = require("convls.highlight")
local render = require("convls.chat.render")
local server = require("convls.server")
local sessions = require("convls.session")
local view = require("convls.chat.view")
local window = require("convls.window")

local M = {}

---@class convls.Attachment
---@field item convls.protocol.ContextItem
---@field tokens? integer

---@class convls.Editing
---@field id string the message or reply of which another version is written
---@field kind convls.protocol.Kind
---@field draft string[] what stood in the prompt before
---@field attachments convls.Attachment[]

---@class convls.Chat
---@field session convls.Session
---@field view convls.View
---@field buf integer
---@field attachments convls.Attachment[]
---@field editing? convls.Editing
---@field sending? boolean
local Chat = {}
Chat.__index = Chat

local by_buf = {} ---@type table<integer, convls.Chat>
local by_session = {} ---@type table<string, convls.Chat>
local last_used ---@type convls.Chat?
-- What was being written in chats that were closed, by session.
local kept = {} ---@type table<string, { prompt: string[], attachments: convls.Attachment[], editing?: convls.Editing }>

local function tell(text, level)
  vim.notify("convls: " .. text, level or vim.log.levels.INFO)
end

--- Returns the chat of the current buffer, or the one used last, or nil.
---@return convls.Chat?
function M.current()
  return by_buf[vim.api.nvim_get_current_buf()] or last_used
end

--- Returns the chat that shows in a buffer, or nil.
---@param buf integer
---@return convls.Chat?
function M.of(buf)
  return by_buf[buf]
end

--- Returns the chat of a session, or nil.
---@param id string
---@return convls.Chat?
function M.of_session(id)
  return by_session[id]
end

--- Returns the current chat, and tells the person if there is none.
---@return convls.Chat?
function M.need()
  local chat = M.current()
  if not chat then
    tell("no chat is open: :Convls chat opens one", vim.log.levels.WARN)
  end
  return chat
end

-- The lines above the prompt.
function Chat:bar()
  local lines = {}
  local session = self.session
  for _, queued in ipairs(session.queue) do
    local state = queued.held and "held" or "queued"
    local preview = vim.trim((queued.preview:gsub("%s+", " ")))
    lines[#lines + 1] = { { ("%s %d: %s"):format(state, queued.position, preview), "ConvlsRunning" } }
  end
  local compaction = session.compaction
  if compaction then
    lines[#lines + 1] = { { "compacting…", "ConvlsRunning" } }
  end
  local what = "Message"
  if self.editing then
    what = self.editing.kind == "user" and "Another version of your message" or "Another version of the reply"
  end
  local line = { { "── " .. what .. " ", "ConvlsPrompt" } }
  if self.sending then
    line[#line + 1] = { "being sent… ", "ConvlsRunning" }
  end
  if not session.connected then
    -- Lines of a mark are not wrapped, so this one is short; the message said more.
    local refused = session.failure and errors.code(session.failure)
    local why = session.info and "the server has gone" or refused and "not opened: " .. refused or "opening…"
    lines[#lines + 1] = { { why, "ConvlsError" } }
    if session.info or refused then
      lines[#lines + 1] = { { "Next: :Convls restart", "ConvlsError" } }
    end
  end
  line[#line + 1] = { ("─"):rep(40), "ConvlsMeta" }
  lines[#lines + 1] = line
  for i, attachment in ipairs(self.attachments) do
    local tokens = attachment.tokens and ("%s tokens"):format(render.short(attachment.tokens)) or "…"
    lines[#lines + 1] = { { ("+ %d %s (%s)"):format(i, render.origin(attachment.item), tokens), "ConvlsAttachment" } }
  end
  return lines
end

local function make(session, buf)
  local self = setmetatable({ session = session, attachments = {} }, Chat)
  highlight.define()
  self.view = view.new(session, function()
    return self:bar()
  end, buf)
  self.buf = self.view.buf
  by_buf[self.buf], by_session[session.id] = self, self
  self.unwatch = session:watch(function(what, data)
    self:on(what, data)
  end)
  local group = vim.api.nvim_create_augroup("convls.chat." .. self.buf, {})
  local function auto(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = self.buf, callback = callback })
  end
  auto({ "BufEnter", "WinEnter" }, function()
    last_used = self
    self:guard()
  end)
  auto({ "CursorMoved", "CursorMovedI", "InsertEnter" }, function()
    self:guard()
  end)
  auto("BufWinEnter", function()
    self:dress(vim.api.nvim_get_current_win())
  end)
  window.on_unload(self.buf, function()
    self:close()
  end, function()
    return by_buf[self.buf] ~= nil
  end)
  vim.api.nvim_create_autocmd("WinScrolled", {
    group = group,
    callback = function()
      for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
        if vim.fn.line("w0", win) <= 3 then
          return self.session:load_before()
        end
      end
    end,
  })
  vim.bo[self.buf].filetype = "convls"
  if config.get().keymaps then
    window.map(self.buf, "keys")
  end
  local former = kept[session.id]
  if former then
    kept[session.id] = nil
    self.attachments, self.editing = former.attachments, former.editing
    self.view:set_prompt(former.prompt)
    self.view:draw_bar()
  end
  if session.info then -- another view has loaded it
    vim.schedule(function()
      if by_buf[self.buf] == self then
        self:on("loaded")
      end
    end)
  end
  return self
end

function Chat:close()
  if self.timer then
    self.timer:close()
    self.timer = nil
  end
  kept[self.session.id] = { prompt = self.view:prompt(), attachments = self.attachments, editing = self.editing }
  self.unwatch()
  by_buf[self.buf], by_session[self.session.id] = nil, nil
  if last_used == self then
    last_used = nil
  end
  pcall(vim.api.nvim_del_augroup_by_id, vim.api.nvim_create_augroup("convls.chat." .. self.buf, {}))
end

--- Settings of a window that shows the chat.
function Chat:dress(win)
  local wo = window.dress(win)
  wo.wrap, wo.linebreak, wo.breakindent, wo.smoothscroll = true, true, true, true
  wo.conceallevel = 0
  if config.get().fold_tools then
    window.fold(win)
  end
  if config.get().winbar then
    wo.winbar = "%{%v:lua.require'convls.chat'.winbar()%}"
  end
  if config.get().fold_tools then
    self.view:fold_all(win)
  end
end

--- Lets a person write in the prompt, and nowhere else.
function Chat:guard()
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  local inside = line >= self.view:end_row()
  if vim.bo[self.buf].modifiable ~= inside then
    vim.bo[self.buf].modifiable = inside
  end
end

-- asked tells whether this Neovim asked for what an event of a compaction tells: then
-- the reply tells it.
local function asked(event)
  local own = event.origin and event.origin.client_id == server.client_id()
  return own and event.trigger ~= "auto" and event.trigger ~= "reactive"
end

function Chat:on(what, data)
  if what == "delta" then
    self.view:append(data)
    return self:batch()
  elseif what == "loaded" or what == "rows" or what == "row" then
    self.view:draw()
  elseif what == "gone" then
    tell("the session was deleted", vim.log.levels.WARN)
  elseif what == "event" then
    if data.type == "local_command" and data.text then
      tell(data.text)
    elseif data.type == "turn_retrying" then
      tell(("the model did not answer; it is asked again in %d ms"):format(data.after_ms or 0))
    elseif data.type == "compaction_recommended" then
      tell(("the context fills %d %% of the window: :Convls compact makes room"):format(data.percent or 0))
    elseif data.type == "compaction_finished" and not asked(data) then
      tell(require("convls.compact").made(data))
    elseif data.type == "compaction_failed" and data.error and not asked(data) then
      tell("no summary was made: " .. errors.text(data.error), vim.log.levels.WARN)
    end
    return
  end
  if what == "state" then
    self.view:draw()
  end
  self.view:draw_bar()
  vim.cmd.redrawstatus({ bang = true })
  if what == "loaded" then
    self:to_prompt(vim.fn.win_findbuf(self.buf))
    if self.shown then
      self.shown()
      self.shown = nil
    end
    bus.autocmd("ConvlsChatOpened", { session_id = self.session.id, buf = self.buf })
  end
end

--- Draws what came, at most once in so many milliseconds: at once, if the last time is
--- that long ago.
function Chat:batch()
  if self.timing then
    return
  end
  self.timing = true
  self.timer = self.timer or assert(vim.uv.new_timer())
  self.timer:start(
    math.max(0, config.get().batch_ms - (vim.uv.now() - (self.flushed or 0))),
    0,
    vim.schedule_wrap(function()
      self.timing = false
      if self.timer then
        self.view:flush()
        self.flushed = vim.uv.now()
      end
    end)
  )
end

--- Puts the cursor into the prompt: that of the current window, or of the windows given.
---@param wins? integer[]
function Chat:to_prompt(wins)
  local last = vim.api.nvim_buf_line_count(self.buf)
  for _, win in ipairs(wins or { vim.api.nvim_get_current_win() }) do
    if vim.api.nvim_win_get_buf(win) == self.buf then
      vim.api.nvim_win_set_cursor(win, { last, #vim.fn.getbufoneline(self.buf, last) })
    end
  end
  if vim.api.nvim_get_current_buf() == self.buf then
    self:guard()
  end
end

--- Brings the chat to the screen.
function Chat:show()
  local wins = vim.fn.win_findbuf(self.buf)
  local here = vim.tbl_filter(function(win)
    return vim.api.nvim_win_get_tabpage(win) == vim.api.nvim_get_current_tabpage()
  end, wins)
  if here[1] then
    vim.api.nvim_set_current_win(here[1])
  else
    window.show(self.buf)
    self:to_prompt()
  end
  last_used = self
  if config.get().insert then
    vim.cmd.startinsert({ bang = true })
  end
end

--- Makes a buffer that was opened by its name the chat of a session.
---@param id string
---@param buf integer
function M.adopt(id, buf)
  local shown = by_session[id]
  if shown then
    return vim.notify("convls: this chat is open already", vim.log.levels.WARN)
  end
  make(sessions.get(id), buf)
end

--- Shows a message: loads it, and what a summary stands for, where it is not there yet.
---@param id string
function Chat:go_to(id)
  self.session:reveal(id, function(there)
    local line = there and self.view:line_of(id)
    if not line then
      return tell("that message is not on this branch", vim.log.levels.WARN)
    end
    self:show()
    vim.cmd("normal! m'")
    vim.api.nvim_win_set_cursor(0, { line + 1, 0 })
    vim.cmd("normal! zvzt")
  end)
end

--- Shows what the summary at the cursor stands for, or the one that stands here; or
--- hides it again.
function Chat:expand()
  local row = self:row_here()
  local id = row and (row.kind == "summary" and row.id or row.covered_by)
  if not id or id == "" then
    local summary = self.session:last("summary")
    id = summary and summary.id
  end
  if not id then
    return tell("no summary stands here", vim.log.levels.WARN)
  end
  local off
  off = self.session:watch(function(what)
    if what == "rows" then
      off()
      local line = self.view:line_of(id)
      if line and vim.api.nvim_get_current_buf() == self.buf then
        vim.api.nvim_win_set_cursor(0, { line + 1, 0 })
      end
    end
  end)
  self.session:toggle(id)
end

--- Shows what is known of the message at the cursor in a float.
function Chat:hover()
  local row = self:row_here()
  if not row then
    return tell("put the cursor on a message", vim.log.levels.WARN)
  end
  require("convls.hover").show(self.session, row, self.session.rows, function(id)
    self:go_to(id)
  end)
end

--- Opens the chat of a session.
---@param id string
---@param done? fun(chat: convls.Chat) called when the transcript is there
---@return convls.Chat
function M.open(id, done)
  local chat = by_session[id]
  if not chat then
    chat = make(sessions.get(id))
    chat.shown = done and function()
      done(chat)
    end
  elseif done then
    vim.schedule(function()
      done(chat)
    end)
  end
  chat:show()
  return chat
end

--- Makes a session and opens its chat.
---@param title string
---@param done? fun(chat: convls.Chat)
function M.new(title, done)
  local params = { workspace = vim.fn.getcwd(), request_id = server.request_id() }
  if title ~= "" then
    params.title = title
  end
  server.request("convls/session/create", params, function(err, session)
    if err then
      return M.report(err, "making a session")
    end
    M.open(session.session_id, done)
  end)
end

--- Tells of an error, unless the connection has told of it already.
---@param err convls.Error
---@param doing string
function M.report(err, doing)
  local connection = server.status()
  if connection.state == "off" and connection.failure == errors.text(err) then
    return
  end
  errors.show(err, doing)
end

--- Opens the session that was used last in this folder, or makes one.
---@param done? fun(chat: convls.Chat)
function M.open_last(done)
  server.request("convls/session/list", { workspace = vim.fn.getcwd(), limit = 1 }, function(err, result)
    if err then
      return M.report(err, "listing the sessions")
    end
    local session = result.sessions[1]
    if session then
      M.open(session.session_id, done)
    else
      M.new("", done)
    end
  end)
end

--- Opens a session by its id or its title.
---@param name string
function M.open_named(name)
  server.request("convls/session/list", { limit = 500 }, function(err, result)
    if err then
      return M.report(err, "listing the sessions")
    end
    local matches = vim.tbl_filter(function(session)
      return session.session_id == name or session.title == name
    end, result.sessions)
    if #matches == 1 then
      return M.open(matches[1].session_id)
    end
    -- It may be older than what a page lists.
    server.request("convls/session/open", { session_id = name, tail = 1 }, function(refusal)
      if refusal then
        local hint = #matches > 1 and (("%d sessions have the title %q"):format(#matches, name)) or nil
        return tell(hint and hint .. ": choose one with :Convls sessions" or errors.text(refusal), vim.log.levels.ERROR)
      end
      M.open(name)
    end)
  end)
end

local function trimmed(lines)
  local first, last = 1, #lines
  while first <= last and vim.trim(lines[first]) == "" do
    first = first + 1
  end
  while last >= first and vim.trim(lines[last]) == "" do
    last = last - 1
  end
  return table.concat(vim.list_slice(lines, first, last), "\n")
end

--- Returns what stands in the prompt and what is attached to it, as a send takes them;
--- nil where nothing stands there.
---@return string? content
---@return convls.protocol.ContextItem[]? context
function Chat:draft()
  local text = trimmed(self.view:prompt())
  if text == "" then
    return nil
  end
  local context = vim.tbl_map(function(attachment)
    return attachment.item
  end, self.attachments)
  return text, #context > 0 and context or nil
end

--- Sends what stands in the prompt. It stays there until the server has it.
function Chat:send()
  if self.sending then
    return tell("the message is being sent", vim.log.levels.WARN)
  end
  local before = self.view:prompt()
  local params = {}
  params.content, params.context = self:draft()
  if not params.content then
    return tell("there is nothing to send: write below the line", vim.log.levels.WARN)
  end
  local method, editing = "convls/turn/send", self.editing
  if editing then
    method, params.node_id = "convls/turn/edit", editing.id
    if editing.kind ~= "user" then
      params.context = nil
    end
  else
    params.expected_head = self.session.head
  end
  -- If the reply was lost, the same message sent again is not made twice.
  local same = self.unanswered
  local message = vim.inspect({ method, params.content, params.context, params.node_id })
  if same and same.message == message then
    params.request_id, params.expected_head = same.request_id, same.expected_head
  else
    params.request_id = server.request_id()
  end
  self.unanswered = { message = message, request_id = params.request_id, expected_head = params.expected_head }
  self.sending = true
  self.view:draw_bar()
  self.session:change(method, params, function(err)
    self.sending = false
    if errors.code(err) ~= errors.SERVER_LOST then
      self.unanswered = nil
    end
    if err then
      self.view:draw_bar()
      return M.report(err, editing and "sending the other version" or "sending")
    end
    if vim.deep_equal(self.view:prompt(), before) then
      self.editing, self.attachments = nil, {}
      if editing then
        self.attachments = editing.attachments
      end
      self.view:set_prompt(editing and editing.draft or { "" })
      self:to_prompt()
    end
    self.view:draw_bar()
  end)
end

--- Ends what is being answered: all answers, if there are several side by side.
function Chat:stop()
  local replies = vim.tbl_keys(self.session.running)
  if #replies == 0 then
    return tell("no answer is being written", vim.log.levels.WARN)
  end
  for _, reply in ipairs(replies) do
    self.session:change("convls/turn/cancel", { reply_id = reply }, function(err)
      if err then
        M.report(err, "stopping the answer")
      end
    end)
  end
end

--- Takes the last message out of the queue.
function Chat:unqueue()
  local queued = self.session.queue[#self.session.queue]
  if not queued then
    return tell("nothing waits", vim.log.levels.WARN)
  end
  self.session:change("convls/turn/cancel", { reply_id = queued.reply_id }, function(err)
    if err then
      return M.report(err, "taking the message out of the queue")
    end
    tell("taken out: " .. queued.preview)
  end)
end

--- Returns the row at the cursor, if the cursor is in this chat and not in its prompt.
---@return convls.protocol.Row?
function Chat:row_here()
  if vim.api.nvim_get_current_buf() == self.buf then
    return self.view:row_at(vim.api.nvim_win_get_cursor(0)[1] - 1)
  end
end

--- Returns the row at the cursor if it is of one of the kinds, else the last one of the
--- first kind that has any.
local function target(chat, kinds)
  local here = chat:row_here()
  if here and here.kind == "tool" and here.caller then
    here = chat.session:row(here.caller)
  end
  if here then
    if vim.tbl_contains(kinds, here.kind) then
      return here
    end
    return nil
  end
  for _, kind in ipairs(kinds) do
    local row = chat.session:last(kind)
    if row then
      return row
    end
  end
end

--- Asks again for the reply at the cursor, or for the last one.
---@param count integer how many candidates
function Chat:retry(count)
  -- In the prompt the whole last answer is meant: all calls of its turn.
  local row = target(self, self:row_here() and { "user", "assistant" } or { "user" })
  if not row then
    return tell("there is no message here to be answered again", vim.log.levels.WARN)
  end
  local params = { node_id = row.id, count = count > 1 and count or nil }
  self.session:change("convls/turn/retry", params, function(err)
    if err then
      M.report(err, "retrying")
    end
  end)
end

local function plain_text(parts)
  local texts = {}
  for _, part in ipairs(parts) do
    if part.type == "text" then
      texts[#texts + 1] = part.text
    end
  end
  return vim.split(table.concat(texts, "\n"), "\n", { plain = true })
end

local function attached(parts)
  local attachments = {}
  for _, part in ipairs(parts) do
    if part.type == "resource" then
      local item = { type = part.context_type or "text", uri = part.uri, range = part.range, text = part.text or "" }
      attachments[#attachments + 1] = { item = item }
    end
  end
  return attachments
end

--- Opens the message at the cursor, or the last one, in the prompt: what is sent then is
--- another version of it.
function Chat:edit()
  local row = target(self, { "user", "assistant" })
  if not row then
    return tell("there is no message here to be edited", vim.log.levels.WARN)
  end
  local former = self.editing
  self.editing = {
    id = row.id,
    kind = row.kind,
    draft = former and former.draft or self.view:prompt(),
    attachments = former and former.attachments or self.attachments,
  }
  self.attachments = attached(row.content)
  self:count()
  self.view:set_prompt(plain_text(row.content))
  self.view:draw_bar()
  self:to_prompt()
end

--- Ends [Chat:edit] without sending: the draft from before comes back.
function Chat:end_edit()
  local editing = self.editing
  if not editing then
    return tell("no message is being edited", vim.log.levels.WARN)
  end
  self.editing, self.attachments = nil, editing.attachments
  self.view:set_prompt(editing.draft)
  self.view:draw_bar()
  self:to_prompt()
end

--- Goes to the sibling before or after the row at the cursor, or the last row that has
--- siblings.
---@param way "prev"|"next"
function Chat:sibling(way)
  local row = self:row_here()
  if not (row and row.siblings and row.siblings.count > 1) then
    row = nil
    for i = #self.session.rows, 1, -1 do
      local candidate = self.session.rows[i]
      if candidate.siblings and candidate.siblings.count > 1 then
        row = candidate
        break
      end
    end
  end
  if not row then
    return tell("nothing here has another version", vim.log.levels.WARN)
  end
  local there = row.siblings[way]
  if not there then
    return tell(way == "next" and "this is the newest version" or "this is the oldest version")
  end
  self.session:change(
    "convls/branch/checkout",
    { node_id = there.tip, expected_head = self.session.head },
    function(err)
      if err then
        M.report(err, "going to the other version")
      end
    end
  )
end

--- Goes back to before the message at the cursor, or the last one. Its text comes into
--- the prompt if that is empty. Nothing is deleted.
function Chat:rewind()
  local row = target(self, { "user" })
  if not row then
    return tell("put the cursor on one of your messages", vim.log.levels.WARN)
  end
  self.session:change(
    "convls/branch/rewind",
    { node_id = row.id, expected_head = self.session.head },
    function(err, result)
      if err then
        return M.report(err, "rewinding")
      end
      if trimmed(self.view:prompt()) == "" and not self.editing then
        self.view:set_prompt(plain_text(result.content))
        self.attachments = attached(result.content)
        self:count()
        self.view:draw_bar()
        self:to_prompt()
      end
    end
  )
end

-- used asks how many tokens the model would read with a draft.
local function used(session, context, done)
  server.request("convls/context/get", {
    session_id = session.id,
    text = false,
    limit = 1,
    draft = { content = ".", context = context },
  }, function(err, result)
    if err then
      return M.report(err, "counting tokens")
    end
    done(result.budget.used)
  end)
end

--- Asks the server how many tokens the attachments take: what the context with one has
--- more than the context without.
function Chat:count()
  used(self.session, nil, function(without)
    for _, attachment in ipairs(self.attachments) do
      if not attachment.tokens then
        used(self.session, { attachment.item }, function(with)
          attachment.tokens = with - without
          self.view:draw_bar()
        end)
      end
    end
  end)
end

--- Attaches something to the next message.
---@param item? convls.protocol.ContextItem
---@param problem? string why there is none
function Chat:attach(item, problem)
  if not item then
    return tell(problem or "there is nothing to attach", vim.log.levels.WARN)
  end
  self.attachments[#self.attachments + 1] = { item = item }
  self:count()
  self.view:draw_bar()
  tell("attached " .. render.origin(item))
end

--- Takes attachments off: one by its number, or all.
---@param number? integer
function Chat:detach(number)
  if #self.attachments == 0 then
    return tell("nothing is attached", vim.log.levels.WARN)
  end
  if not number then
    self.attachments = {}
  elseif not table.remove(self.attachments, number) then
    return tell(("there are %d attachments"):format(#self.attachments), vim.log.levels.WARN)
  end
  self.view:draw_bar()
end

--- Calls `work` with the current chat, or with the one that is opened where there is
--- none. The window that the person is in stays the current one.
---@param work fun(chat: convls.Chat)
function M.with(work)
  local chat = M.current()
  if chat then
    return work(chat)
  end
  local win = vim.api.nvim_get_current_win()
  M.open_last(function(opened)
    if vim.api.nvim_win_is_valid(win) then
      vim.api.nvim_set_current_win(win)
    end
    work(opened)
  end)
end

--- Attaches what `:Convls attach` names.
---@param call convls.Call
function M.attach(call)
  local buf, kind = vim.api.nvim_get_current_buf(), call.args[1]
  local rest = vim.trim((call.text:gsub("^%S+", "", 1)))
  if by_buf[buf] and (kind ~= "file" and kind ~= "quickfix") then
    -- From inside a chat the file beside it is meant.
    local alternate = vim.fn.bufnr("#")
    if alternate < 1 or by_buf[alternate] then
      return tell("go to the buffer to attach, or name a file: :Convls attach file PATH", vim.log.levels.WARN)
    end
    buf = alternate
  end
  local item, problem
  if kind == nil or kind == "selection" then
    if call.range and not by_buf[vim.api.nvim_get_current_buf()] then
      item = attach.selection(buf, call.range[1], call.range[2])
    elseif kind == nil then
      item = attach.buffer(buf)
    else
      problem = "select something first: :'<,'>Convls attach"
    end
  elseif kind == "buffer" then
    item = attach.buffer(buf)
  elseif kind == "file" then
    if rest == "" then
      problem = "name the file: :Convls attach file PATH"
    else
      item, problem = attach.file(rest)
    end
  elseif kind == "quickfix" then
    item, problem = attach.quickfix()
  elseif kind == "diagnostics" then
    item, problem = attach.diagnostics(buf)
  else
    problem = ("%q can not be attached: one of %s can"):format(kind, table.concat(attach.kinds, ", "))
  end
  M.with(function(chat)
    chat:attach(item, problem)
  end)
end

--- Lets the person choose a session.
function M.pick_session()
  server.request("convls/session/list", { limit = 500 }, function(err, result)
    if err then
      return M.report(err, "listing the sessions")
    end
    if #result.sessions == 0 then
      return tell("there is no session yet: :Convls new makes one")
    end
    vim.ui.select(result.sessions, {
      prompt = "Session",
      kind = "convls.session",
      format_item = function(session)
        local title = session.title ~= "" and session.title or session.session_id
        return ("%s · %s · %d nodes"):format(title, session.updated_at:sub(1, 16):gsub("T", " "), session.nodes)
      end,
    }, function(session)
      if session then
        M.open(session.session_id)
      end
    end)
  end)
end

--- Chooses the model of the current chat.
---@param name? string
function M.pick_model(name)
  local chat = M.need()
  if not chat then
    return
  end
  local function configure(model)
    chat.session:change("convls/session/configure", { model = model }, function(err)
      if err then
        return M.report(err, "changing the model")
      end
      tell("the model is " .. model)
    end)
  end
  if name then
    return configure(name)
  end
  server.request("convls/model/list", {}, function(err, result)
    if err then
      return M.report(err, "listing the models")
    end
    for _, problem in ipairs(result.errors) do
      tell(("%s: %s"):format(problem.provider, errors.text(problem.error)), vim.log.levels.WARN)
    end
    vim.ui.select(result.models, {
      prompt = "Model",
      kind = "convls.model",
      format_item = function(model)
        return model.id .. (model.window > 0 and (" · %s tokens"):format(render.short(model.window)) or "")
      end,
    }, function(model)
      if model then
        configure(model.id)
      end
    end)
  end)
end

-- What goes on: writing, queued, stopped.
local function activity(session)
  local words = {}
  if not session.connected and session.info then
    words[#words + 1] = "no server"
  end
  if next(session.running) then
    words[#words + 1] = "writing"
  end
  if #session.queue > 0 then
    words[#words + 1] = ("%d queued"):format(#session.queue)
  end
  if session.compaction then
    words[#words + 1] = "compacting"
  end
  return words
end

--- Returns the winbar of a chat window.
---@return string
function M.winbar()
  local chat = by_buf[vim.api.nvim_win_get_buf(vim.g.statusline_winid or 0)]
  local info = chat and chat.session.info
  if not chat or not info then
    return ""
  end
  local function escaped(text)
    return (text:gsub("%%", "%%%%"))
  end
  local words = { escaped(info.title ~= "" and info.title or "New chat") }
  if info.branch then
    words[#words + 1] = "⎇ " .. escaped(info.branch)
  end
  words[#words + 1] = escaped(info.model)
  local budget = info.budget
  if budget and budget.limit > 0 then
    local group = budget.percent >= 70 and "ConvlsBudgetHigh" or "ConvlsBudgetLow"
    words[#words + 1] = ("%%#%s#%s/%s %d%%%%%%*"):format(
      group,
      render.short(budget.used),
      render.short(budget.limit),
      math.floor(budget.percent + 0.5)
    )
  end
  words[#words + 1] = render.cost(info.usage)
  local busy = activity(chat.session)
  if #busy > 0 then
    words[#words + 1] = ("%%#ConvlsRunning#%s%%*"):format(table.concat(busy, ", "))
  end
  -- In a narrow window it is the title that is cut.
  return " %<" .. table.concat(words, " · ")
end

--- See `require("convls").statusline()`.
---@return string
function M.statusline()
  local chat = M.current()
  local info = chat and chat.session.info
  if not chat or not info then
    return ""
  end
  local words = { info.model }
  local budget = info.budget
  if budget and budget.limit > 0 then
    words[#words + 1] = ("%d%%"):format(math.floor(budget.percent + 0.5))
  end
  words[#words + 1] = render.cost(info.usage)
  vim.list_extend(words, activity(chat.session))
  return table.concat(words, " ")
end

return M
