--- The context view of a session in a buffer: exactly what the model would read with the
--- next message, entry by entry, each with its tokens and why it is there. What stands in
--- the prompt, and what is attached to it, is part of it.
local config = require("convls.config")
local draw = require("convls.graph.draw")
local errors = require("convls.errors")
local highlight = require("convls.highlight")
local render = require("convls.chat.render")
local server = require("convls.server")
local sessions = require("convls.session")
local window = require("convls.window")

local M = {}

local ns = vim.api.nvim_create_namespace("convls.context")

-- How many entries the view shows. One request brings them, but for very long texts: to
-- count the tokens the server reads everything each time.
local MOST = 5000

-- The reasons of the protocol, where another word says more.
local why = { spine = "branch", subtree = "called" }

---@class convls.Context
---@field session convls.Session
---@field buf integer
---@field entries convls.protocol.ContextEntry[]
---@field total integer
---@field lines table<integer, integer> the entry that a line belongs to
---@field starts integer[] the line of each entry, from 1
local Context = {}
Context.__index = Context

local by_buf = {} ---@type table<integer, convls.Context>
local by_session = {} ---@type table<string, convls.Context>

--- Returns the context view of the current buffer, or nil.
---@return convls.Context?
function M.current()
  return by_buf[vim.api.nvim_get_current_buf()]
end

local function make(session, buf)
  highlight.define()
  buf = buf or window.buffer(("convls:/session/%s/context"):format(session.id))
  local self = setmetatable({ session = session, buf = buf, entries = {}, total = 0, starts = {}, lines = {} }, Context)
  window.own(buf)
  by_buf[buf], by_session[session.id] = self, self
  self.unwatch = session:watch(function(what)
    if what == "loaded" or what == "rows" or what == "row" or what == "state" then
      self:load()
    end
  end)
  local group = vim.api.nvim_create_augroup("convls.context." .. buf, {})
  local function auto(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = callback })
  end
  auto("BufWinEnter", function()
    local wo = window.dress(vim.api.nvim_get_current_win())
    wo.wrap, wo.linebreak, wo.cursorline = true, true, true
    window.fold(vim.api.nvim_get_current_win())
    wo.winhighlight = "Folded:Normal" -- each entry is a fold: marked, all would be
    self:fold({})
  end)
  -- What stands in the prompt is part of it.
  auto({ "BufEnter", "WinEnter" }, function()
    self:load()
  end)
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI" }, {
    group = group,
    pattern = ("convls:/session/%s/chat"):format(session.id),
    callback = function()
      self:load_soon()
    end,
  })
  window.on_unload(buf, function()
    self.unwatch()
    if self.timer then
      self.timer:close()
    end
    by_buf[buf], by_session[session.id] = nil, nil
    pcall(vim.api.nvim_del_augroup_by_id, group)
  end, function()
    return by_buf[buf] ~= nil
  end)
  vim.bo[buf].filetype = "convls-context"
  if config.get().keymaps then
    window.map(buf, "context")
  end
  return self
end

--- Opens the context view of a session.
---@param id string
function M.open(id)
  local self = by_session[id]
  local shown = self and vim.fn.win_findbuf(self.buf)[1]
  if shown then
    return vim.api.nvim_set_current_win(shown)
  end
  self = self or make(sessions.get(id))
  window.show(self.buf)
end

--- Makes a buffer that was opened by its name the context view of a session.
---@param id string
---@param buf integer
function M.adopt(id, buf)
  local shown = by_session[id]
  if not shown then
    make(sessions.get(id), buf)
  end
end

-- What stands in the prompt of the session's chat, as context/get takes it.
local function draft(session)
  local chat = require("convls.chat").of_session(session.id)
  if not chat or chat.editing then -- another version of a message has another context
    return nil
  end
  local content, context = chat:draft()
  return content and { content = content, context = context } or nil
end

-- So many milliseconds after the last key the view shows what was typed.
local PAUSE = 300

--- Asks for what is new when the person has typed on.
function Context:load_soon()
  self.timer = self.timer or assert(vim.uv.new_timer())
  self.timer:start(PAUSE, 0, function()
    vim.schedule(function()
      if by_buf[self.buf] == self then
        self:load()
      end
    end)
  end)
end

--- Asks for what is new. What is asked for meanwhile is asked for once after it.
function Context:load()
  -- A request would start a server that a person has stopped.
  if not self.session.connected or #vim.fn.win_findbuf(self.buf) == 0 then
    return
  end
  if self.loading then
    self.again = true
    return
  end
  self.loading, self.again = true, false
  local entries = {}
  local params = { session_id = self.session.id, limit = MOST, draft = draft(self.session) }
  local function ended(view)
    self.loading = false
    if not by_buf[self.buf] then
      return
    end
    if view then
      self.view, self.entries = view, entries
      self:draw()
    end
    if self.again then
      self:load()
    end
  end
  local function page()
    server.request("convls/context/get", params, function(err, view)
      if err then
        if errors.code(err) ~= errors.SERVER_LOST then
          errors.show(err, "reading the context")
        end
        return ended()
      end
      vim.list_extend(entries, view.entries)
      if (view.next or "") ~= "" and #entries < MOST then
        params.cursor = view.next
        return page()
      end
      ended(view)
    end)
  end
  page()
end

-- The lines above the entries.
local function title(view)
  local budget = view.budget
  local words = { render.short(budget.used) .. " tokens" }
  if budget.limit > 0 then
    words[1] = ("%s of %s tokens, %d %%"):format(
      render.short(budget.used),
      render.short(budget.limit),
      math.floor(budget.percent + 0.5)
    )
    words[#words + 1] = ("%s kept for the answer"):format(render.short(budget.output_reserve))
    words[#words + 1] = ("compaction begins at %s"):format(render.short(budget.trigger_at))
  end
  words[#words + 1] = ({
    provider = "as the provider counts",
    tokenizer = "exact",
    estimate = "estimated",
  })[budget.source] or budget.source
  local lines = { "What the model reads: " .. table.concat(words, " · ") }
  for _, omitted in ipairs(view.omitted) do
    lines[#lines + 1] = ("A summary stands for %s%s"):format(
      render.counted(omitted.count, "message"),
      omitted.tokens > 0 and (" of %s tokens"):format(render.short(omitted.tokens)) or ""
    )
  end
  lines[#lines + 1] = ""
  return lines
end

local groups = {
  root = "ConvlsSystem",
  user = "ConvlsUser",
  assistant = "ConvlsAssistant",
  summary = "ConvlsSummary",
  tool = "ConvlsTool",
}

-- The folds that a person has opened, by entry, in each window.
function Context:opened()
  local open = {}
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    vim.api.nvim_win_call(win, function()
      for i, start in ipairs(self.starts) do
        if vim.fn.foldclosed(start) < 0 then
          open[self.keys[i]] = true
        end
      end
    end)
  end
  return open
end

--- Makes the folds anew: one an entry, closed but for those in `open`.
---@param open table<string, boolean>
function Context:fold(open)
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    vim.api.nvim_win_call(win, function()
      local saved = vim.fn.winsaveview()
      vim.cmd("silent! normal! zE")
      for i, start in ipairs(self.starts) do
        local last = (self.starts[i + 1] or vim.api.nvim_buf_line_count(self.buf) + 1) - 1
        if last > start then
          vim.cmd(("silent! %d,%dfold"):format(start, last))
          if open[self.keys[i]] then
            vim.cmd(("silent! %dfoldopen"):format(start))
          end
        end
      end
      vim.fn.winrestview(saved)
    end)
  end
end

function Context:draw()
  local open = self.keys and self:opened() or {}
  -- The cursors stay on their entries, and these where they are on the screen.
  local held = {}
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    local cursor = vim.api.nvim_win_get_cursor(win)
    local entry = self.lines[cursor[1]]
    if entry then
      local row = vim.api.nvim_win_call(win, vim.fn.winline)
      held[win] = { key = self.keys[entry], offset = cursor[1] - self.starts[entry], row = row }
    end
  end
  local lines, marks = title(self.view), { { 0, "Title" } }
  local starts, of, keys, at = {}, {}, {}, {}
  local room = 40 -- for the beginning of a text, in the widest window
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    room = math.max(room, vim.api.nvim_win_get_width(win) - 34)
  end
  for i, entry in ipairs(self.entries) do
    local key = entry.id ~= "" and entry.id or entry.why
    while at[key] do
      key = key .. "+"
    end
    starts[i], keys[i], at[key] = #lines + 1, key, i
    local preview = draw.clean(entry.text:sub(1, 400))
    if vim.fn.strchars(preview) > room then
      preview = vim.fn.strcharpart(preview, 0, room - 1) .. "…"
    end
    lines[#lines + 1] = ("%3d %-9s %6s %-8s │ %s"):format(
      i,
      entry.kind,
      render.short(entry.tokens),
      why[entry.why] or entry.why,
      preview ~= "" and preview or "(empty)"
    )
    marks[#marks + 1] =
      { #lines - 1, entry.why == "draft" and "ConvlsAttachment" or groups[entry.kind] or "ConvlsSystem" }
    if entry.text ~= "" then
      vim.list_extend(lines, vim.split(entry.text, "\n", { plain = true }))
    end
    for line = starts[i], #lines do
      of[line] = i
    end
  end
  if self.view.total > #self.entries then
    lines[#lines + 1] = ("%d more entries are not shown"):format(self.view.total - #self.entries)
  end
  self.starts, self.lines, self.keys = starts, of, keys
  vim.bo[self.buf].modifiable = true
  vim.api.nvim_buf_set_lines(self.buf, 0, -1, false, lines)
  vim.bo[self.buf].modifiable = false
  vim.api.nvim_buf_clear_namespace(self.buf, ns, 0, -1)
  for _, mark in ipairs(marks) do
    vim.api.nvim_buf_set_extmark(self.buf, ns, mark[1], 0, { end_row = mark[1] + 1, end_col = 0, hl_group = mark[2] })
  end
  self:fold(open)
  for win, was in pairs(held) do
    local entry = at[was.key]
    if entry then
      local last = (starts[entry + 1] or #lines + 1) - 1
      vim.api.nvim_win_set_cursor(win, { math.min(starts[entry] + was.offset, last), 0 })
      vim.api.nvim_win_call(win, function()
        -- By rows of the screen, since a fold takes one.
        vim.cmd("normal! zt" .. (was.row > 1 and was.row - 1 .. "\25" or ""))
      end)
    end
  end
end

--- Returns the entry at the cursor, or nil.
---@return convls.protocol.ContextEntry?
function Context:entry()
  return self.entries[self.lines[vim.api.nvim_win_get_cursor(0)[1]]]
end

--- Goes to the message that the entry at the cursor is.
function Context:jump()
  local entry = self:entry()
  if not entry or entry.id == "" then
    return vim.notify("convls: this is no message", vim.log.levels.WARN)
  end
  require("convls.compact").go(self.session)(entry.id)
end

--- Shows the node of the entry at the cursor in a float.
function Context:hover()
  local entry = self:entry()
  if entry and entry.id ~= "" then
    require("convls.hover").show(self.session, entry, {}, require("convls.compact").go(self.session))
  end
end

return M
