--- Draws a GraphView as lines of text, one a row, with their highlights. The server
--- has laid out rows and lanes (docs/graph.md, For authors of editors); what is drawn
--- is what `convls graph` draws. Nothing here touches a buffer.
local bit = require("bit")

local M = {}

local UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8

local glyphs = {
  [0] = " ",
  [UP] = "╵",
  [DOWN] = "╷",
  [LEFT] = "╴",
  [RIGHT] = "╶",
  [UP + DOWN] = "│",
  [LEFT + RIGHT] = "─",
  [UP + RIGHT] = "╰",
  [UP + LEFT] = "╯",
  [DOWN + RIGHT] = "╭",
  [DOWN + LEFT] = "╮",
  [UP + DOWN + RIGHT] = "├",
  [UP + DOWN + LEFT] = "┤",
  [LEFT + RIGHT + DOWN] = "┬",
  [LEFT + RIGHT + UP] = "┴",
  [UP + DOWN + LEFT + RIGHT] = "┼",
}

local kinds = {
  root = "◆",
  user = "○",
  assistant = "●",
  attach = "◇",
  tool = "▪",
  call = "▫",
  notice = "·",
}

local capsules = { folded = "◎", expanded = "◎", inert = "◌", superseded = "◌", undone = "◌", void = "⊗" }

--- How many lanes have a column of their own.
M.MAX_LANES = 24
-- Up to so many columns of lanes all labels begin in one column.
local ALIGNED = 12
-- How many highlight groups the lanes take in turn.
local PALETTE = 6

-- strip takes escape sequences out: with parameters, with a string, and short ones. One
-- that does not end takes the rest along, as it would in a terminal.
local function strip(text)
  local out, at = {}, 1
  while true do
    local escape = text:find("\27", at, true)
    out[#out + 1] = text:sub(at, (escape or 0) - 1)
    if not escape then
      return table.concat(out)
    end
    local kind = text:sub(escape + 1, escape + 1)
    local from, pattern = escape + 1, "^[ -/]*[0-~]?"
    if kind == "[" then
      from, pattern = escape + 2, "^[0-?]*[ -/]*[@-~]?"
    elseif kind == "]" then
      from, pattern = escape + 2, "^[^\7\27]*\7?"
    elseif kind ~= "" and ("PX^_"):find(kind, 1, true) then
      from, pattern = escape + 2, "^[^\27]*"
    end
    -- What ends a string, ESC \, is a short one of its own.
    local _, stop = text:find(pattern, from)
    at = stop + 1
  end
end

--- Makes text from outside one line that is safe to show: without escape codes and
--- control characters, and without those that set the direction of text. Runs of
--- spaces become one.
---@param text string
---@return string
function M.clean(text)
  if text:find("^[!-~ ]*$") and not text:find("  ", 1, true) then
    return vim.trim(text)
  end
  text = strip(text)
  text = text:gsub("\194[\133\160]", " "):gsub("\225\154\128", " "):gsub("\227\128\128", " ")
  text = text:gsub("\226\128[\128-\138\168\169\175]", " "):gsub("\226\129\159", " ")
  text = text:gsub("\226\128[\170-\174\142\143]", ""):gsub("\226\129[\166-\169]", ""):gsub("\216\156", "")
  text = text:gsub("\239\187\191", ""):gsub("\239\191[\190\191]", ""):gsub("\194[\128-\159]", "")
  text = text:gsub("[\9-\13]", " "):gsub("[%z\1-\31\127]", ""):gsub(" +", " ")
  return vim.trim(text)
end

local function thousands(n)
  local text = ("%d"):format(n):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (text:gsub("^,", ""))
end

local function counted(n, noun)
  return n == 1 and "1 " .. noun or ("%s %ss"):format(thousands(n), noun)
end

--- Returns the state and the count of a summary's fold, or nil for other rows.
---@param row convls.protocol.GraphRow
---@return string? state
---@return integer? count
function M.fold(row)
  if row.kind ~= "summary" then
    return nil
  end
  local state = row.fold and row.fold.state or ""
  if row.void then
    state = "void"
  elseif row.superseded_summary and state ~= "undone" then
    state = "superseded"
  end
  return state, row.fold and row.fold.count or row.covers_count or 0
end

local fold_texts = {
  folded = "(%s folded)",
  expanded = "(%s, shown above)",
  inert = "(%s: not on this branch)",
  superseded = "(%s: superseded)",
  undone = "(%s: undone)",
  void = "(%s: void)",
}

local function fold_text(row)
  local state, count = M.fold(row)
  if (state or "") == "" then
    return ""
  end
  return (fold_texts[state] or "(%s)"):format(counted(count, "message"))
end

local final = { sealed = true, failed = true, cancelled = true, interrupted = true }

local function row_text(row)
  local text = M.clean(row.preview or "")
  if text ~= "" then
    return text
  elseif row.redacted then
    return "(redacted)"
  elseif row.kind == "attach" then
    return "(attached)"
  elseif row.kind == "root" then
    return "(beginning)"
  elseif not final[row.status] and (row.status or "") ~= "" then
    return ""
  end
  return "(empty)"
end

local function calls_text(count)
  if count <= 0 then
    return ""
  elseif count == 1 then
    return "+1 call"
  end
  return ("+%s%s calls"):format(thousands(count), count >= 1000 and " or more" or "")
end

local function short_id(id)
  id = M.clean(id)
  return vim.fn.strchars(id) > 16 and "…" .. vim.fn.strcharpart(id, vim.fn.strchars(id) - 8) or id
end

-- source_text says what an attach node points at: by the name of its branch, or its
-- number, or by its id where no more is known.
local function source_text(source, is_local)
  if source.deleted then
    return "<- deleted"
  end
  local node = short_id(source.node_id)
  if (source.branch or "") ~= "" then
    node = M.clean(source.branch)
  elseif (source.depth or 0) > 0 then
    node = "#" .. thousands(source.depth)
  elseif source.kind == "summary" then
    node = "summary"
  end
  local session = short_id(source.session_id or "")
  if (source.title or "") ~= "" then
    session = M.clean(source.title)
  end
  return "<- " .. ((is_local or session == "") and "" or session .. "/") .. node
end

local function lane_group(lane)
  return "ConvlsLane" .. (lane % PALETTE + 1)
end

-- A layout is a view with its edges tied to the rows. Rows are counted from 0 here:
-- -1 is above the first one, their number below the last.
local Layout = {}
Layout.__index = Layout

local function layout(view)
  local self = setmetatable({ rows = {}, index = {}, lines = {}, sources = {}, highest = 0 }, Layout)
  self.count = #view.rows
  for i, row in ipairs(view.rows) do
    self.rows[i - 1], self.index[row.id] = row, i - 1
    self.highest = math.max(self.highest, row.lane)
  end
  self.unsent = 0
  if self.count > 0 then
    self.unsent = view.passing or 0
    for _, edge in ipairs(view.edges) do
      self:add(edge)
    end
  end
  self.columns = math.min(self.highest, M.MAX_LANES) + 1
  return self
end

-- slot returns the first row at or after a slot.
function Layout:slot(slot)
  local low, high = 0, self.count
  while low < high do
    local middle = math.floor((low + high) / 2)
    if self.rows[middle].row >= slot then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

-- misplaced reports whether an edge has a lane that there can not be.
local function misplaced(edge)
  for _, bend in ipairs(edge.bends or {}) do
    if bend.from < 0 or bend.to < 0 then
      return true
    end
  end
  return edge.from_lane < 0 or edge.to_lane < 0
end

function Layout:add(edge)
  if misplaced(edge) then
    return
  end
  local from, to = self.index[edge.from], self.index[edge.to]
  if not from then
    from = edge.from_row <= self.rows[0].row and -1 or self:slot(edge.from_row)
  end
  if not to then
    if edge.to_row >= self.rows[self.count - 1].row then
      to = self.count
    else
      to = edge.to_row < self.rows[0].row and -1 or self:slot(edge.to_row)
    end
  end
  if to < 0 or from >= self.count then
    return
  end
  if edge.style == "attach" then
    if from < to then
      self.sources[edge.to] = self.index[edge.from] or -1
    end
    return
  end
  local line = { from = from, to = to, from_lane = edge.from_lane, to_lane = edge.to_lane, run = edge.to_lane }
  line.bends = {}
  line.sideways = edge.from_row == edge.to_row
  line.dashed = edge.style == "spawn" or edge.style == "folded" and line.sideways
  local bends = edge.bends or {}
  if line.sideways then
    if to == self.count or self.rows[to].row ~= edge.to_row then
      return
    end
    line.from = to
  elseif from >= to then
    return
  elseif #bends > 0 then
    line.run = bends[1].from
    for _, bend in ipairs(bends) do
      self:bend(line, bend)
    end
  end
  self.highest = math.max(self.highest, line.run)
  if line.from >= 0 then
    self.highest = math.max(self.highest, line.from_lane)
  end
  for _, bend in ipairs(line.bends) do
    self.highest = math.max(self.highest, bend.from, bend.to)
  end
  if from < 0 and to == self.count then
    self.unsent = self.unsent - 1
  end
  self.lines[#self.lines + 1] = line
end

-- A bend above the window, or at the beginning of its line, only says where that runs.
function Layout:bend(line, bend)
  local row, last = self:slot(bend.row), line.bends[#line.bends]
  if row <= line.from or (row == 0 and bend.row < self.rows[0].row) then
    line.run = bend.to
  elseif row >= self.count then
    return
  elseif last and last.row == row then
    last.to = bend.to
  else
    line.bends[#line.bends + 1] = { row = math.min(row, line.to), from = bend.from, to = bend.to }
  end
end

-- A sweep goes from row to row and knows which lines run in which column.
local Sweep = {}
Sweep.__index = Sweep

function Sweep:open(line, lane)
  if lane >= M.MAX_LANES then
    self.more = self.more + 1
  else
    self.active[lane] = { arms = UP + DOWN, dashed = line.dashed, lane = lane }
  end
end

function Sweep:shut(lane)
  if lane >= M.MAX_LANES then
    self.more = self.more - 1
  else
    self.active[lane] = nil
  end
end

function Sweep:arms(lane, add, remove, dashed)
  local column = math.min(lane, M.MAX_LANES)
  local cell = self.cells[column]
  if lane >= M.MAX_LANES then
    remove = 0 -- others may run in the same column
  end
  if not cell then
    cell = { arms = 0 }
    self.cells[column] = cell
  end
  if cell.arms == 0 then
    cell.lane, cell.dashed = lane, dashed
  end
  cell.arms = bit.bor(bit.band(cell.arms, bit.bnot(remove)), add)
end

function Sweep:across(from, to, line)
  local a, b = math.min(from, M.MAX_LANES), math.min(to, M.MAX_LANES)
  if a == b then
    return
  end
  self:arms(from, a < b and RIGHT or LEFT, 0, line.dashed)
  self:arms(to, a < b and LEFT or RIGHT, 0, line.dashed)
  local low = math.min(a, b)
  for i = low, math.max(a, b) - 1 do
    self.gaps[i] = { arms = LEFT + RIGHT, dashed = line.dashed, lane = to }
    if i > low then
      self:arms(i, LEFT + RIGHT, 0, line.dashed)
    end
  end
end

function Sweep:finish(line, row)
  local last = line.bends[#line.bends]
  if last and last.row == row then
    return -- it bends into its node
  end
  self:shut(last and last.to or line.run)
end

function Sweep:bend(line, bend)
  local from, to, row = bend.from, bend.to, bend.row
  if from == to then
    if line.to == row then
      self:shut(from)
      self:arms(from, 0, DOWN, line.dashed)
    end
    return
  end
  self:shut(from)
  self:arms(from, 0, DOWN, line.dashed)
  self:across(from, to, line)
  if line.to ~= row then
    self:open(line, to)
    self:arms(to, DOWN, 0, line.dashed)
  end
end

function Sweep:begin(line)
  if line.sideways then
    return self:across(line.from_lane, line.to_lane, line)
  end
  self:across(line.from_lane, line.run, line)
  self:open(line, line.run)
  self:arms(line.run, DOWN, 0, line.dashed)
end

-- sweep calls visit for every row with its cells and the gaps right of them.
function Layout:sweep(visit)
  local begins, bends, ends = {}, {}, {}
  local function note(list, row, what)
    list[row] = list[row] or {}
    table.insert(list[row], what)
  end
  for _, line in ipairs(self.lines) do
    note(begins, line.from, line)
    for _, bend in ipairs(line.bends) do
      note(bends, bend.row, { line, bend })
    end
    if line.to < self.count and not line.sideways then
      note(ends, line.to, line)
    end
  end
  local state = setmetatable({ active = {}, more = 0 }, Sweep)
  for _, line in ipairs(begins[-1] or {}) do
    state:open(line, line.run)
  end
  for i = 0, self.count - 1 do
    state.cells, state.gaps = {}, {}
    for lane, cell in pairs(state.active) do
      state.cells[lane] = { arms = cell.arms, dashed = cell.dashed, lane = cell.lane }
    end
    if state.more > 0 then
      state.cells[M.MAX_LANES] = { arms = UP + DOWN, lane = M.MAX_LANES }
    end
    for _, line in ipairs(ends[i] or {}) do
      state:finish(line, i)
    end
    for _, pair in ipairs(bends[i] or {}) do
      state:bend(pair[1], pair[2])
    end
    for _, line in ipairs(begins[i] or {}) do
      state:begin(line)
    end
    visit(i, state.cells, state.gaps)
  end
end

local function cell_glyph(cell)
  if cell.dashed and cell.arms == UP + DOWN then
    return "┆"
  elseif cell.dashed and cell.arms == LEFT + RIGHT then
    return "╌"
  end
  return glyphs[cell.arms]
end

local function node_glyph(row)
  if row.kind == "summary" then
    return capsules[M.fold(row)] or "◌"
  end
  return kinds[row.kind] or "?"
end

local function node_group(row)
  local state = M.fold(row)
  if row.ghost or state == "superseded" or state == "undone" or state == "inert" then
    return "ConvlsGhost"
  elseif state == "void" or row.status == "failed" then
    return "ConvlsError"
  elseif state then
    return "ConvlsCapsule"
  end
  return lane_group(math.max(row.lane, 0))
end

-- A line that is put together from pieces, each with its highlight.
local function writer()
  return { pieces = {}, spans = {}, at = 0 }
end

local function put(out, text, group)
  out.pieces[#out.pieces + 1] = text
  if group and text ~= " " and text ~= "" then
    out.spans[#out.spans + 1] = { out.at, out.at + #text, group }
  end
  out.at = out.at + #text
end

function Layout:put_lanes(out, row, cells, gaps)
  local column = math.max(math.min(row.lane, M.MAX_LANES), 0)
  local at = (row.tier or 0) == 0 and column or -1
  local last = math.max(column, math.min(self.columns, ALIGNED) - 1)
  for used, cell in pairs(cells) do
    if cell.arms ~= 0 then
      last = math.max(last, used)
    end
  end
  for i = 0, last do
    local cell, gap = cells[i], gaps[i]
    if i == at then
      put(out, node_glyph(row), node_group(row))
    elseif i == M.MAX_LANES and cell and cell.arms ~= 0 then
      put(out, "…", "ConvlsMeta")
    else
      put(out, cell and cell_glyph(cell) or " ", cell and cell.lane and lane_group(cell.lane))
    end
    if i < last then
      put(out, gap and cell_glyph(gap) or " ", gap and lane_group(gap.lane))
    end
  end
end

function Layout:put_label(out, i)
  local row, next_row = self.rows[i], self.rows[i + 1]
  local function piece(text, group)
    if text ~= "" then
      put(out, " ")
      put(out, text, group)
    end
  end
  local tier = row.tier or 0
  if tier > 0 then
    piece(("  "):rep(tier - 1) .. "└", "ConvlsMeta")
    piece(node_glyph(row), node_group(row))
  end
  if row.ghost or (row.covered_by or "") ~= "" then
    piece("┊", "ConvlsGhost")
  end
  for _, branch in ipairs(row.branches or {}) do
    piece("[" .. M.clean(branch) .. "]", "ConvlsBranch")
  end
  if row.is_head then
    piece("◀ HEAD", "ConvlsHead")
  end
  piece(fold_text(row), "ConvlsCapsule")
  local inside = self.sources[row.id]
  if row.source then
    piece(source_text(row.source, inside ~= nil), "ConvlsMeta")
  end
  local text
  if row.kind == "attach" and (row.preview or "") == "" and not row.redacted then
    text = inside and inside >= 0 and row_text(self.rows[inside]) or ""
  else
    text = row_text(row)
  end
  local read = row.in_context and not row.ghost and not row.superseded_summary
  piece(text, row.read and "ConvlsRead" or not read and "ConvlsGhost" or nil)
  local status = row.status ~= "sealed" and M.clean(row.status or "") or ""
  if status ~= "" then
    piece("(" .. status .. ")", final[row.status] and "ConvlsError" or "ConvlsRunning")
  end
  local shown = next_row and (next_row.tier or 0) > 0 and next_row.row == row.row
  piece(calls_text(shown and 0 or row.calls or 0), "ConvlsMeta")
  piece(row.pinned and "pinned" or "", "ConvlsMeta")
  piece(row.read and "read" or "", "ConvlsMeta")
  if row.lane >= M.MAX_LANES then
    piece(("(lane %s)"):format(thousands(row.lane + 1)), "ConvlsMeta")
  end
end

--- A drawing: `rows[i]` is the row that line i shows, nil for a line that is a note.
---@class convls.Drawing
---@field lines string[]
---@field spans [integer, integer, string][][] of each line: first and last byte, and the highlight group
---@field rows table<integer, convls.protocol.GraphRow>

--- Draws a view.
---@param view convls.protocol.GraphView
---@return convls.Drawing
function M.draw(view)
  local drawing = { lines = {}, spans = {}, rows = {} }
  local function note(text)
    drawing.lines[#drawing.lines + 1] = text
    drawing.spans[#drawing.lines] = { { 0, #text, "ConvlsMeta" } }
  end
  local self = layout(view)
  if (view.before or "") ~= "" then
    note("⋮ there is more above")
  end
  self:sweep(function(i, cells, gaps)
    local out = writer()
    self:put_lanes(out, self.rows[i], cells, gaps)
    self:put_label(out, i)
    local at = #drawing.lines + 1
    drawing.lines[at] = (table.concat(out.pieces):gsub(" +$", ""))
    drawing.spans[at], drawing.rows[at] = out.spans, self.rows[i]
  end)
  if (view.after or "") ~= "" then
    note("⋮ there is more below")
  end
  if self.highest + 1 > M.MAX_LANES then
    note(("… lanes %d to %s share the last column"):format(M.MAX_LANES + 1, thousands(self.highest + 1)))
  end
  if self.unsent > 0 then
    note(("… %s that only pass by are left out"):format(counted(self.unsent, "line")))
  end
  return drawing
end

return M
