--- A chat's buffer: the transcript, which follows the session, and below it the
--- prompt, which is the person's.
---
--- The transcript is no part of the undo history: undo in the prompt takes back what
--- was typed, and nothing that the ledger holds seems to be gone. Neovim keeps one
--- history a buffer, so what is typed while a reply arrives can be undone back to the
--- last text that came.
local render = require("convls.chat.render")
local window = require("convls.window")

local M = {}

local ns = vim.api.nvim_create_namespace("convls.chat")

---@class convls.View
---@field buf integer
---@field session convls.Session
---@field blocks convls.Block[]
---@field bar fun(): [string, string][][] the lines above the prompt
---@field tail integer the extmark at the empty line that ends the transcript
---@field writing boolean
---@field pending table<string, string[]> text that came and is not drawn yet, by row
---@field drawn table<convls.protocol.Row, convls.Block|false> how rows look that do not change
local View = {}
View.__index = View

--- Makes the view of a session.
---@param session convls.Session
---@param bar fun(): [string, string][][]
---@param buf? integer a buffer that has its name already, or a new one is made
---@return convls.View
function M.new(session, bar, buf)
  buf = buf or window.buffer(("convls:/session/%s/chat"):format(session.id))
  local self = setmetatable({
    buf = buf,
    session = session,
    bar = bar,
    blocks = {},
    writing = false,
    pending = {},
    drawn = setmetatable({}, { __mode = "k" }),
  }, View)
  vim.bo[buf].buftype = "nofile"
  vim.bo[buf].bufhidden = "hide"
  vim.bo[buf].swapfile = false
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_clear_namespace(buf, ns, 0, -1)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, { "# …", "", "" })
  self:set_tail(1)
  vim.api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first)
      if self.writing or self.broken then
        return
      end
      if first < self:end_row() then
        self.broken = true
        vim.schedule(function()
          self:mend()
        end)
      elseif vim.api.nvim_buf_line_count(buf) <= self:end_row() then
        -- The prompt's only line was deleted: there is always one.
        vim.schedule(function()
          if not self.gone and vim.api.nvim_buf_line_count(buf) <= self:end_row() then
            vim.bo[buf].modifiable = true -- the cursor has left the prompt with its line
            vim.api.nvim_buf_set_lines(buf, -1, -1, false, { "" })
            for _, win in ipairs(vim.fn.win_findbuf(buf)) do
              vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(buf), 0 })
            end
          end
        end)
      end
    end,
    on_detach = function()
      self.gone = true
    end,
  })
  return self
end

--- Returns the line of the empty line that ends the transcript, from 0: the last line
--- of the last block.
---@return integer
function View:tail_row()
  local at = vim.api.nvim_buf_get_extmark_by_id(self.buf, ns, self.tail, {})
  return at[1] or 0
end

--- Returns the first line of the prompt, from 0: the transcript ends before it.
---@return integer
function View:end_row()
  return self:tail_row() + 1
end

function View:set_tail(row)
  self.tail = vim.api.nvim_buf_set_extmark(self.buf, ns, row, 0, {
    id = self.tail,
    virt_lines = self.bar(),
    right_gravity = false,
  })
end

--- Draws the lines above the prompt anew.
function View:draw_bar()
  if not self.gone then
    self:set_tail(self:tail_row())
  end
end

--- Runs `change`, which writes to the transcript. Windows whose cursor is at the end
--- stay there; all others show what they showed.
function View:write(change)
  if self.gone or not vim.api.nvim_buf_is_valid(self.buf) then
    return
  end
  local ends = {}
  local tail = self:tail_row()
  local last = vim.api.nvim_buf_line_count(self.buf)
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    local cursor = vim.api.nvim_win_get_cursor(win)
    if cursor[1] - 1 >= tail then
      ends[win] = { last - cursor[1], cursor[2] }
    end
  end
  local bo = vim.bo[self.buf]
  local modifiable = bo.modifiable
  self.writing = true
  bo.modifiable = true
  bo.undolevels = -1
  local ok, err = xpcall(change, debug.traceback)
  bo.undolevels = -123456 -- the global value again
  bo.modifiable = modifiable
  bo.modified = false
  self.writing = false
  if not ok then
    error(err, 0)
  end
  last = vim.api.nvim_buf_line_count(self.buf)
  for win, at in pairs(ends) do
    vim.api.nvim_win_set_cursor(win, { math.max(1, last - at[1]), at[2] })
  end
end

function View:set_heading(block, row)
  block.mark = vim.api.nvim_buf_set_extmark(self.buf, ns, row, 0, {
    id = block.mark,
    end_row = row,
    end_col = #block.lines[1],
    hl_group = block.group,
    hl_mode = "combine",
    virt_text = block.heading,
    virt_text_pos = "eol",
    invalidate = false,
    strict = false,
  })
  if block.ghost then
    block.ghost_mark = vim.api.nvim_buf_set_extmark(self.buf, ns, row, 0, {
      id = block.ghost_mark,
      end_row = row + #block.lines - 1,
      end_col = 0,
      hl_group = "ConvlsGhost",
      priority = 190,
      strict = false,
    })
  end
  if block.remark then
    block.remark_mark = vim.api.nvim_buf_set_extmark(self.buf, ns, row + block.remark[1] - 1, 0, {
      id = block.remark_mark,
      end_row = row + block.remark[2],
      end_col = 0,
      hl_group = block.remark[3],
      priority = 200,
      strict = false,
    })
  end
end

function View:forget(block)
  vim.api.nvim_buf_del_extmark(self.buf, ns, block.mark)
  for _, mark in ipairs({ "remark_mark", "ghost_mark" }) do
    if block[mark] then
      vim.api.nvim_buf_del_extmark(self.buf, ns, block[mark])
    end
    block[mark] = nil
  end
  block.mark = nil
end

--- Returns the first line of a block, from 0.
---@param i integer
---@return integer
function View:start_of(i)
  local block = self.blocks[i]
  if not block then
    return self:end_row()
  end
  return vim.api.nvim_buf_get_extmark_by_id(self.buf, ns, block.mark, {})[1]
end

function View:title_block()
  local info = self.session.info
  local title = info and info.title or ""
  title = title == "" and "New chat" or title
  return {
    id = "",
    key = title .. (self.session.before and "+" or ""),
    lines = { "# " .. title, "" },
    heading = self.session.before and { { " more above", "ConvlsMeta" } } or {},
    group = "ConvlsUser",
    folds = {},
  }
end

--- Draws what differs from the session's rows, and nothing else.
function View:draw()
  self.pending = {}
  local blocks = { self:title_block() }
  for _, row in ipairs(self.session.rows) do
    -- A row that changes becomes another table, but for one that is being written.
    local block = self.drawn[row]
    if block == nil then
      block = render.safely(row, self.session.info and self.session.info.system) or false
      self.drawn[row] = row.kind ~= "root" and not (block and block.open) and block or nil
    end
    if block then
      blocks[#blocks + 1] = block
    end
  end
  local old = self.blocks
  local first = 1
  local function same(a, b)
    return a and b and a.key == b.key and not b.open
  end
  while same(old[first], blocks[first]) do
    blocks[first] = old[first]
    first = first + 1
  end
  local last_old, last_new = #old, #blocks
  while last_old >= first and last_new >= first and same(old[last_old], blocks[last_new]) do
    blocks[last_new] = old[last_old]
    last_old, last_new = last_old - 1, last_new - 1
  end
  if first > last_old and first > last_new then
    self.blocks = blocks
    return self:draw_bar()
  end
  local from = #old == 0 and 0 or self:start_of(first)
  local to = self:start_of(last_old + 1)
  -- Rows that come above what a window shows must not push that away.
  local restore = last_old < first and first <= #old and self:hold_views(from)
  self:write(function()
    for i = first, last_old do
      self:forget(old[i])
    end
    local lines = {}
    for i = first, last_new do
      vim.list_extend(lines, blocks[i].lines)
    end
    local tail = self:tail_row() + #lines - (to - from)
    vim.api.nvim_buf_set_lines(self.buf, from, to, false, lines)
    local row = from
    for i = first, last_new do
      self:set_heading(blocks[i], row)
      row = row + #blocks[i].lines
    end
    self.blocks = blocks
    self:set_tail(tail)
  end)
  self:refold(first, last_new)
  if restore then
    restore()
  end
end

--- Notes what the windows show whose first line is at `row` or above, from 0. The
--- function that is returned shows that again, wherever it has moved.
---@param row integer
---@return fun()
function View:hold_views(row)
  local before = vim.api.nvim_buf_line_count(self.buf)
  local views = {}
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    local shown = vim.api.nvim_win_call(win, vim.fn.winsaveview)
    if shown.topline <= row + 1 and shown.lnum <= self:tail_row() then
      views[win] = shown
    end
  end
  return function()
    local added = vim.api.nvim_buf_line_count(self.buf) - before
    for win, shown in pairs(views) do
      shown.topline = math.max(shown.topline, row + 1) + added
      shown.lnum = math.max(shown.lnum, row + 1) + added
      vim.api.nvim_win_call(win, function()
        vim.fn.winrestview(shown)
      end)
    end
  end
end

--- Notes text that came to the end of a row; [View:flush] draws it.
---@param delta { id: string, part: integer, text: string, kind: string }
function View:append(delta)
  local pending = self.pending[delta.id]
  if not pending then
    pending = { part = delta.part, kind = delta.kind }
    self.pending[delta.id] = pending
  elseif pending.part ~= delta.part then
    pending.mixed = true
  end
  pending[#pending + 1] = delta.text
end

--- Draws the text that came since the last time: at the end of its row where it goes on
--- there, or else the row anew.
function View:flush()
  local pending = self.pending
  self.pending = {}
  local redraw = false
  self:write(function()
    for id, pieces in pairs(pending) do
      local at
      for i = #self.blocks, 1, -1 do
        if self.blocks[i].id == id then
          at = i
          break
        end
      end
      local block = at and self.blocks[at]
      if not block or pieces.mixed or pieces.part ~= block.streamed or pieces.kind == "tool_args" then
        redraw = redraw or pieces.kind ~= "tool_args"
      else
        local prefix = pieces.kind == "reasoning" and "> " or ""
        local text = table.concat(pieces)
        local new = vim.split((text:gsub("\r", "")), "\n", { plain = true })
        for i = 2, #new do
          new[i] = prefix .. new[i]
        end
        -- The block's last line is the empty one; the text ends on the line before.
        local row = self:start_of(at + 1) - 2
        local line = vim.api.nvim_buf_get_lines(self.buf, row, row + 1, true)[1]
        local tail = self:tail_row()
        vim.api.nvim_buf_set_text(self.buf, row, #line, row, #line, new)
        block.lines[#block.lines - 1] = block.lines[#block.lines - 1] .. new[1]
        for i = 2, #new do
          table.insert(block.lines, #block.lines, new[i])
        end
        self:set_tail(tail + #new - 1)
      end
    end
  end)
  if redraw then
    self:draw()
  end
end

--- Puts the transcript right after something else wrote into it; the prompt is kept.
function View:mend()
  if self.gone then
    return
  end
  local tail = self:tail_row()
  local lines = vim.api.nvim_buf_get_lines(self.buf, tail, -1, false)
  if lines[1] == "" then
    table.remove(lines, 1)
  end
  self:write(function()
    vim.api.nvim_buf_clear_namespace(self.buf, ns, 0, -1)
    self.blocks, self.tail = {}, nil
    if #lines == 0 then
      lines = { "" }
    end
    vim.api.nvim_buf_set_lines(self.buf, 0, -1, false, vim.list_extend({ "", "" }, lines))
    self:set_tail(1)
  end)
  self.broken = false
  self:draw()
end

--- Returns the prompt's lines.
---@return string[]
function View:prompt()
  return vim.api.nvim_buf_get_lines(self.buf, self:end_row(), -1, false)
end

--- Puts other lines into the prompt, for something else than what stood there: what was
--- typed before can not be brought into it by undo.
---@param lines string[]
function View:change_prompt(lines)
  local row = self:end_row()
  self:write(function()
    vim.api.nvim_buf_set_lines(self.buf, row, -1, false, #lines > 0 and lines or { "" })
  end)
end

--- Puts lines into the prompt. A person can undo that.
---@param lines string[]
function View:set_prompt(lines)
  local bo = vim.bo[self.buf]
  local modifiable = bo.modifiable
  bo.modifiable = true
  vim.api.nvim_buf_set_lines(self.buf, self:end_row(), -1, false, #lines > 0 and lines or { "" })
  bo.modifiable = modifiable
  bo.modified = false
end

--- Returns the row that stands at a line (from 0), or nil in the prompt.
---@param line integer
---@return convls.protocol.Row?
function View:row_at(line)
  if line >= self:tail_row() then
    return nil
  end
  for i = #self.blocks, 1, -1 do
    if self:start_of(i) <= line then
      return self.session:row(self.blocks[i].id)
    end
  end
end

--- Returns the first line of a row, from 0, or nil if it is not drawn.
---@param id string
---@return integer?
function View:line_of(id)
  for i, block in ipairs(self.blocks) do
    if block.id == id then
      return self:start_of(i)
    end
  end
end

--- Closes the folds of the blocks from `first` to `last` in every window.
function View:refold(first, last)
  local folds = {}
  for i = first, last do
    local block = self.blocks[i]
    if block and #block.folds > 0 then
      local start = self:start_of(i)
      for _, fold in ipairs(block.folds) do
        if fold[2] > fold[1] then
          folds[#folds + 1] = { start + fold[1], start + fold[2] }
        end
      end
    end
  end
  if #folds == 0 then
    return
  end
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    if vim.wo[win].foldmethod == "manual" and vim.w[win].convls_folds then
      vim.api.nvim_win_call(win, function()
        local view = vim.fn.winsaveview()
        for _, fold in ipairs(folds) do
          vim.cmd(("silent! %d,%dfold"):format(fold[1], fold[2]))
        end
        vim.fn.winrestview(view)
      end)
    end
  end
end

--- Makes all folds in a window that shows the buffer since now.
---@param win integer
function View:fold_all(win)
  vim.w[win].convls_folds = true
  vim.api.nvim_win_call(win, function()
    vim.cmd("silent! normal! zE")
  end)
  self:refold(1, #self.blocks)
end

return M
