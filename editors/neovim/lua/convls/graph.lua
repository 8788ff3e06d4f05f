--- The graph of a session in a buffer: one window of rows at a time, as the server has
--- laid it out, around the cursor where that comes near an end.
local config = require("convls.config")
local draw = require("convls.graph.draw")
local errors = require("convls.errors")
local highlight = require("convls.highlight")
local server = require("convls.server")
local sessions = require("convls.session")
local window = require("convls.window")

local M = {}

local ns = vim.api.nvim_create_namespace("convls.graph")

--- How many rows a window has.
M.LIMIT = 400
-- So near to an end of the window the cursor asks for the rows beyond.
local MARGIN = 40

---@class convls.Graph
---@field session convls.Session
---@field buf integer
---@field view? convls.protocol.GraphView
---@field drawing? convls.Drawing
---@field expanded string[]
---@field around? string the node that the window is around, HEAD if nil
---@field reads_of? string
---@field gone? boolean whether the session was deleted
---@field to_head? boolean whether the cursors go to HEAD with the next answer
---@field target? { id: string, win: integer, around?: string } where a cursor goes with it
local Graph = {}
Graph.__index = Graph

local by_buf = {} ---@type table<integer, convls.Graph>
local by_session = {} ---@type table<string, convls.Graph>

--- Returns the graph of the current buffer, or nil.
---@return convls.Graph?
function M.current()
  return by_buf[vim.api.nvim_get_current_buf()]
end

local function make(session, buf)
  highlight.define()
  buf = buf or window.buffer(("convls:/session/%s/graph"):format(session.id))
  local self = setmetatable({ session = session, buf = buf, expanded = {} }, Graph)
  window.own(buf)
  by_buf[buf], by_session[session.id] = self, self
  self.connected = session.connected
  self.unwatch = session:watch(function(what)
    if what == "gone" then
      self:went()
    elseif what == "loaded" then
      self.connected = true
      self:tell()
      self:load(true)
    elseif what == "state" and self.connected ~= session.connected then
      self.connected = session.connected
      self:tell()
      if self.connected then
        self:load(true) -- nobody knows which requests the server took along
      end
    elseif what == "event" and session.revision > (self.view and self.view.revision or -1) then
      self:load()
    end
  end)
  local group = vim.api.nvim_create_augroup("convls.graph." .. buf, {})
  local function auto(event, callback)
    vim.api.nvim_create_autocmd(event, { group = group, buffer = buf, callback = callback })
  end
  auto("CursorMoved", function()
    self:page()
  end)
  auto("BufWinEnter", function()
    local wo = window.dress(vim.api.nvim_get_current_win())
    wo.wrap, wo.cursorline = false, true
    wo.list, wo.listchars = true, "extends:…"
    self:tell()
  end)
  window.on_unload(buf, function()
    self.unwatch()
    by_buf[buf], by_session[session.id] = nil, nil
    pcall(vim.api.nvim_del_augroup_by_id, group)
  end, function()
    return by_buf[buf] ~= nil
  end)
  vim.bo[buf].filetype = "convls-graph"
  if config.get().keymaps then
    window.map(buf, "graph")
  end
  return self
end

--- Opens the graph of a session.
---@param id string
function M.open(id)
  local self = by_session[id]
  local shown = self and vim.fn.win_findbuf(self.buf)[1]
  if shown then
    return vim.api.nvim_set_current_win(shown)
  end
  self = self or make(sessions.get(id))
  window.show(self.buf)
  if self.view or self.session.info then
    self:load()
  end
end

--- Makes a buffer that was opened by its name the graph of a session.
---@param id string
---@param buf integer
function M.adopt(id, buf)
  if not by_session[id] then
    local self = make(sessions.get(id), buf)
    if self.session.info then
      self:load()
    end
  end
end

--- Returns the row at the cursor, or nil.
---@return convls.protocol.GraphRow?
function Graph:row()
  return self.drawing and self.drawing.rows[vim.api.nvim_win_get_cursor(0)[1]]
end

--- Returns the row at a line, or the nearest one where that line is a note.
---@param line integer
---@return convls.protocol.GraphRow?
function Graph:row_near(line)
  local rows = self.drawing and self.drawing.rows or {}
  for away = 0, self.drawing and #self.drawing.lines or 0 do
    local row = rows[line + away] or rows[line - away]
    if row then
      return row
    end
  end
end

--- Says at the top of its windows why the graph does not follow the session.
function Graph:tell()
  local text = ""
  if self.gone then
    text = "%#ConvlsError#this session was deleted"
  elseif self.view and not self.session.connected then
    text = "%#ConvlsError#the server has gone. Next: :Convls restart"
  end
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    pcall(function() -- there may be no room for it
      vim.wo[win][0].winbar = text
    end)
  end
end

--- The session was deleted: the picture stays, and nothing is asked for any more.
function Graph:went()
  self.gone = true
  self.unwatch()
  self:tell()
end

--- Asks for what is new. What is asked for meanwhile is asked for once after it.
---@param whole? boolean whether the window is another one than before
function Graph:load(whole)
  if self.gone then
    return
  end
  self.whole = self.whole or whole
  if self.loading then
    self.again = true
    return
  end
  self.loading, self.again = true, false
  local since = not self.whole and self.view and self.view.revision or nil
  self.whole = false
  server.request("convls/graph/get", {
    session_id = self.session.id,
    expanded = #self.expanded > 0 and self.expanded or nil,
    around = self.around,
    reads_of = self.reads_of,
    limit = M.LIMIT,
    since = since,
    covers = "count",
  }, function(err, view)
    self.loading = false
    if not vim.api.nvim_buf_is_valid(self.buf) or not by_buf[self.buf] then
      return
    end
    local code = errors.code(err)
    if code == "unknown_session" then
      return self:went()
    elseif code == errors.SERVER_LOST or code == errors.NO_SERVER then
      return -- what is missed is asked for when the server is there again
    elseif err and self:retreat(err) then
      return self:load(true)
    elseif err then
      errors.show(err, "reading the graph")
    elseif not self:take(view) then
      self.whole, self.again = true, true
    end
    if self.again then
      self:load()
    elseif vim.api.nvim_get_current_buf() == self.buf then
      self:page() -- the cursor may have gone on meanwhile
    end
  end)
end

--- Takes back what the window was asked for with and the server refuses, such as a node
--- that was deleted. Returns false where there is nothing of the kind.
---@param err convls.Error
---@return boolean
function Graph:retreat(err)
  if self.reads_of and (not self.around or err.message:find(self.reads_of, 1, true)) then
    self.reads_of = nil
    if errors.code(err) ~= "unknown_node" then
      errors.show(err, "marking what was read")
    end
    return true
  elseif self.target then
    self.around, self.target = self.target.around, nil
    vim.notify("convls: that message is not there any more", vim.log.levels.WARN)
    return true
  elseif self.around then
    self.around, self.to_head = nil, true
    vim.notify("convls: what the graph was at is not there any more; this is HEAD", vim.log.levels.WARN)
    return true
  end
  return false
end

--- Takes an answer in, and draws. Returns false where it does not fit what is there.
---@param view convls.protocol.GraphView
---@return boolean
function Graph:take(view)
  if view.changed == "none" and self.view then
    self.view.revision = view.revision
    return true
  elseif view.changed == "rows" and self.view then
    local rows, at = self.view.rows, {}
    for i, row in ipairs(rows) do
      at[row.id] = i
    end
    for _, row in ipairs(view.rows) do
      if at[row.id] then
        rows[at[row.id]] = row
      elseif #rows == 0 or row.row > rows[#rows].row then
        rows[#rows + 1] = row
        at[row.id] = #rows
      else
        return false -- where it stands among those of its slot is the server's to say
      end
    end
    local function key(edge)
      return table.concat({ edge.from, edge.to, edge.style }, " ")
    end
    local edges, place = self.view.edges, {}
    for i, edge in ipairs(edges) do
      place[key(edge)] = i
    end
    for _, edge in ipairs(view.edges) do
      edges[place[key(edge)] or #edges + 1] = edge
    end
    view.rows, view.edges = rows, edges
  end
  self.view = view
  self:draw()
  return true
end

-- same reports whether a line of a drawing looks as one of another.
local function same(a, i, b, j)
  local spans, others = a.spans[i], b.spans[j]
  if a.lines[i] ~= b.lines[j] or #spans ~= #others then
    return false
  end
  for k, span in ipairs(spans) do
    local other = others[k]
    if span[1] ~= other[1] or span[2] ~= other[2] or span[3] ~= other[3] then
      return false
    end
  end
  return true
end

--- Puts a drawing into the buffer: the lines that differ from what is there. Most events
--- change a few, and a window has some ten thousand marks.
---@param drawing convls.Drawing
function Graph:put(drawing)
  local old = self.drawing
  if not old then -- what a buffer had before it was read again
    vim.api.nvim_buf_clear_namespace(self.buf, ns, 0, -1)
    old = { lines = { "" }, spans = { {} } }
  end
  local from, till, old_till = 1, #drawing.lines, #old.lines
  while from <= till and from <= old_till and same(old, from, drawing, from) do
    from = from + 1
  end
  while till >= from and old_till >= from and same(old, old_till, drawing, till) do
    till, old_till = till - 1, old_till - 1
  end
  vim.api.nvim_buf_clear_namespace(self.buf, ns, from - 1, old_till)
  vim.bo[self.buf].modifiable = true
  vim.api.nvim_buf_set_lines(self.buf, from - 1, old_till, false, vim.list_slice(drawing.lines, from, till))
  vim.bo[self.buf].modifiable = false
  for i = from, till do
    for _, span in ipairs(drawing.spans[i]) do
      vim.api.nvim_buf_set_extmark(self.buf, ns, i - 1, span[1], { end_col = span[2], hl_group = span[3] })
    end
  end
end

function Graph:draw()
  -- The cursors stay on their nodes, and these where they are on the screen.
  local held = {}
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    local saved = vim.api.nvim_win_call(win, vim.fn.winsaveview)
    local row = self:row_near(saved.lnum)
    held[win] = { saved, row and row.id, row and row.row }
  end
  local to_head, target = self.to_head or not self.drawing, self.target
  local drawing = draw.draw(self.view)
  self:put(drawing)
  self.drawing, self.to_head, self.target = drawing, nil, nil
  for win, was in pairs(held) do
    local saved, line = was[1], self:line_of(was[2], was[3])
    if target and target.win == win then
      line = self:line_of(target.id) or line
    end
    if to_head or not line then
      line = self:line_of_head() or #drawing.lines
    end
    -- Nothing is scrolled away that there is room for.
    local most = math.max(1, #drawing.lines - vim.api.nvim_win_get_height(win) + 1)
    saved.topline = math.max(1, math.min(saved.topline + line - saved.lnum, most))
    saved.lnum = line
    vim.api.nvim_win_call(win, function()
      vim.fn.winrestview(saved)
    end)
  end
end

--- Returns the line of a node. Where that is no row any more, it is the next one after
--- its slot, or the last one.
function Graph:line_of(id, slot)
  if not id then
    return nil
  end
  local near, last
  for i = 1, #self.drawing.lines do
    local row = self.drawing.rows[i]
    if row and row.id == id then
      return i
    elseif row and slot and not near and row.row >= slot then
      near = i
    end
    last = row and i or last
  end
  return near or slot and last or nil
end

function Graph:line_of_head()
  for i, row in pairs(self.drawing.rows) do
    if row.is_head then
      return i
    end
  end
end

--- Asks for the window around the cursor, if that is near an end beyond which there is more.
function Graph:page()
  local view = self.view
  if not view or self.loading or not self.session.connected then
    return
  end
  local line = vim.api.nvim_win_get_cursor(0)[1]
  local above = (view.before or "") ~= "" and line <= MARGIN
  local below = (view.after or "") ~= "" and line > #self.drawing.lines - MARGIN
  if not (above or below) then
    return
  end
  local row = self:row_near(line)
  if row and row.id ~= self.around then
    self.around = row.id
    self:load(true)
  end
end

--- Asks for everything anew.
function Graph:refresh()
  self:load(true)
end

--- Shows what a summary stands for or what a message called, or folds that away again.
function Graph:toggle()
  local row = self:row()
  if not row then
    return
  end
  local id = row.id
  if row.ghost and (row.covered_by or "") ~= "" then
    id = row.covered_by
  elseif (row.tier or 0) > 0 then
    -- A call folds into the chain node that stands above it.
    for i = vim.api.nvim_win_get_cursor(0)[1], 1, -1 do
      local above = self.drawing.rows[i]
      if above and (above.tier or 0) == 0 and above.kind ~= "summary" then
        id = above.id
        break
      end
    end
  elseif row.kind ~= "summary" and (row.calls or 0) == 0 then
    return vim.notify("convls: nothing is folded here", vim.log.levels.WARN)
  end
  for i, expanded in ipairs(self.expanded) do
    if expanded == id then
      table.remove(self.expanded, i)
      local line = self:line_of(id)
      if line then
        vim.api.nvim_win_set_cursor(0, { line, 0 })
      end
      return self:load(true)
    end
  end
  self.expanded[#self.expanded + 1] = id
  self:load(true)
end

--- Marks what a reply, a call or a summary has read, or takes the marks away.
function Graph:reads()
  local row = self:row()
  if row then
    self.reads_of = self.reads_of ~= row.id and row.id or nil
    self:load(true)
  end
end

--- Shows the node at the cursor in a float, with what it read.
function Graph:hover()
  local row = self:row()
  if row then
    local go = require("convls.compact").go(self.session)
    require("convls.hover").show(self.session, row, self.view.rows, go)
  end
end

--- Goes to a node: unfolds what it is folded into, and loads the window around it, where
--- it is no row yet.
---@param id string
function Graph:go_to(id)
  local win = vim.fn.win_findbuf(self.buf)[1]
  if not win or not self.drawing then
    return
  end
  vim.api.nvim_set_current_win(win)
  vim.cmd("normal! m'")
  local line = self:line_of(id)
  if line then
    return vim.api.nvim_win_set_cursor(win, { line, 0 })
  end
  for _, row in ipairs(self.view.rows) do
    if draw.fold(row) == "folded" then
      self.expanded[#self.expanded + 1] = row.id
    end
  end
  self.target = { id = id, win = win, around = self.around }
  self.around = id
  self:load(true)
end

return M
