--- Chats: one for each session that is open in this Neovim. A chat joins the session
--- with its view, and is what the actions work on.
local bus = require("convls.bus")
local config = require("convls.config")
local drafts = require("convls.chat.drafts")
local errors = require("convls.errors")
local highlight = require("convls.highlight")
local render = require("convls.chat.render")
local server = require("convls.server")
local sessions = require("convls.session")
local status = require("convls.chat.status")
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
require("convls.chat.turns")(Chat)
require("convls.chat.attachments")(Chat)

local by_buf = {} ---@type table<integer, convls.Chat>
local by_session = {} ---@type table<string, convls.Chat>
local last_used ---@type convls.Chat?

local function tell(text, level)
  vim.notify("convls: " .. text, level or vim.log.levels.INFO)
end

-- The session that the current buffer is a view of, or nil: each has it in its name.
local function viewed()
  return vim.api.nvim_buf_get_name(0):match("^convls:/%a+/([^/?]+)/")
end

--- Returns the chat of the current buffer, or of the session that it is another view of,
--- or the one used last, or nil.
---@return convls.Chat?
function M.current()
  local id = viewed()
  if id then
    return by_session[id]
  end
  return last_used
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

--- Returns the current chat, and tells the person if there is none. In another view of a
--- session it is that session's, open or not.
---@return convls.Chat?
function M.need()
  local chat, id = M.current(), viewed()
  if not chat and id then
    return M.make(id)
  end
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
    local state = queued.held and "held until an answer succeeds" or "queued"
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
  local budget = session.info and session.info.budget
  for i, attachment in ipairs(self.attachments) do
    local tokens = attachment.tokens and ("%s tokens"):format(render.short(attachment.tokens)) or "…"
    local group = "ConvlsAttachment"
    if budget and budget.limit > 0 and (attachment.tokens or 0) > budget.limit then
      tokens, group = ("%s, the model reads %s"):format(tokens, render.short(budget.limit)), "ConvlsError"
    end
    lines[#lines + 1] = { { ("+ %d %s (%s)"):format(i, render.origin(attachment.item), tokens), group } }
  end
  return lines
end

--- Makes the chat of a session, in a buffer that has its name already or in a new one.
---@param id string
---@param buf? integer
---@return convls.Chat
function M.make(id, buf)
  local session = sessions.get(id)
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
  vim.api.nvim_create_autocmd("VimLeavePre", {
    group = group,
    callback = function()
      self:keep()
    end,
  })
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
  local former = drafts.take(session.id)
  if former then
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

-- keep has what is being written come back when the chat is opened again.
function Chat:keep()
  drafts.keep(self.session.id, {
    prompt = self.view:prompt(),
    attachments = self.attachments,
    editing = self.editing,
  })
end

function Chat:close()
  if self.timer then
    self.timer:close()
    self.timer = nil
  end
  self:keep()
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
    if data.type == "local_command" and data.text and not asked(data) then
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
  M.make(id, buf)
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
    chat = M.make(id)
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
      return server.report(err, "making a session")
    end
    M.open(session.session_id, done)
  end)
end

--- Opens the session of the view that the person is in, or the one that was used last in
--- this folder, or makes one.
---@param done? fun(chat: convls.Chat)
function M.open_last(done)
  local id = viewed()
  if id and not by_buf[vim.api.nvim_get_current_buf()] then
    return M.open(id, done)
  end
  server.request("convls/session/list", { workspace = vim.fn.getcwd(), limit = 1 }, function(err, result)
    if err then
      return server.report(err, "listing the sessions")
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
      return server.report(err, "listing the sessions")
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

--- Calls `work` with the current chat, or with the one that is opened where there is
--- none. The window that the person is in stays the current one.
---@param work fun(chat: convls.Chat)
function M.with(work)
  local chat = (M.current() or viewed()) and M.need()
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

--- Returns the winbar of a chat window.
---@return string
function M.winbar()
  local chat = by_buf[vim.api.nvim_win_get_buf(vim.g.statusline_winid or 0)]
  return chat and status.winbar(chat.session) or ""
end

--- See `require("convls").statusline()`.
---@return string
function M.statusline()
  local chat = M.current()
  return chat and status.statusline(chat.session) or ""
end

return M
