--- What a row of the transcript looks like: lines of Markdown, and what stands beside
--- its heading. Nothing here touches a buffer.
local M = {}

--- A row as it is drawn. Its last line is empty.
---@class convls.Block
---@field id string
---@field key string two blocks with one key look alike
---@field lines string[]
---@field heading [string, string][] what stands beside the first line, as virtual text
---@field group string the highlight of the first line
---@field ghost boolean whether all of it is dimmed
---@field remark? { [1]: integer, [2]: integer, [3]: string } lines that say how it ended, with their highlight
---@field folds integer[][] first and last line of each fold, from 1
---@field open boolean whether text may still come
---@field streamed? integer the part that the last text line belongs to
---@field mark? integer the extmark at the first line

---@param text string
---@return string[]
local function split(text)
  return vim.split(text:gsub("\r\n", "\n"), "\n", { plain = true })
end

--- Returns a number of tokens, short: 840, 5.2k, 1.3M.
---@param n number
---@return string
function M.short(n)
  if n < 1000 then
    return ("%d"):format(n)
  elseif n < 1e6 then
    return (("%.1fk"):format(n / 1000):gsub("%.0k", "k"))
  end
  return (("%.1fM"):format(n / 1e6):gsub("%.0M", "M"))
end

--- Returns dollars, or nil where there are none to tell.
---@param usage? convls.protocol.Usage
---@return string?
function M.cost(usage)
  if usage and usage.cost_usd and usage.cost_usd > 0 then
    return ("$%.4f"):format(usage.cost_usd)
  end
end

--- Returns where something attached comes from: lua/a.lua:3-9.
---@param item { uri?: string, type?: string, context_type?: string, range?: convls.protocol.TextRange }
---@return string
function M.origin(item)
  local name = item.uri or ""
  if vim.startswith(name, "file:") then
    name = vim.fn.fnamemodify(vim.uri_to_fname(name), ":~:.")
  end
  if item.range then
    name = ("%s:%d-%d"):format(
      name,
      item.range.start.line + 1,
      math.max(item.range.start.line + 1, item.range["end"].line)
    )
  end
  local kind = item.context_type or item.type or "text"
  -- Control characters would break the line that this stands in.
  return ((name == "" and kind or kind .. " " .. name):gsub("%c", " "))
end

-- A fence that is not closed would colour everything below it.
local function close_fence(lines)
  local fence
  for _, line in ipairs(lines) do
    local mark = line:match("^%s*(```+)") or line:match("^%s*(~~~+)")
    if mark and not fence then
      fence = mark
    elseif mark and mark:sub(1, 1) == fence:sub(1, 1) and #mark >= #fence and line:match("^%s*[`~]+%s*$") then
      fence = nil
    end
  end
  if fence then
    lines[#lines + (lines[#lines] == "" and 0 or 1)] = fence
  end
end

local headings = {
  user = { "## You", "ConvlsUser" },
  assistant = { "## Assistant", "ConvlsAssistant" },
  root = { "## System", "ConvlsSystem" },
  attach = { "## Attached", "ConvlsSystem" },
  notice = { "## Notice", "ConvlsSystem" },
  call = { "## Call", "ConvlsSystem" },
}

local function put(lines, text, prefix)
  for _, line in ipairs(split(text)) do
    lines[#lines + 1] = prefix and prefix .. line or line
  end
end

local function fence(lines, text, language)
  local mark = "```"
  while text:find(mark, 1, true) do
    mark = mark .. "`"
  end
  lines[#lines + 1] = mark .. (language or "")
  put(lines, text)
  lines[#lines + 1] = mark
end

local function one_line(text, length)
  text = vim.trim((text:gsub("%s+", " ")))
  if vim.fn.strchars(text) > length then
    text = vim.fn.strcharpart(text, 0, length - 1) .. "…"
  end
  return text
end

--- The lines of one part, and whether they are to be folded.
local function part_lines(lines, part)
  if part.type == "text" then
    put(lines, part.text or "")
    return false
  elseif part.type == "reasoning" then
    put(lines, part.text or "", "> ")
    return true
  elseif part.type == "resource" then
    lines[#lines + 1] = "+ " .. M.origin(part)
    fence(lines, part.text or "")
    return true
  elseif part.type == "image" then
    lines[#lines + 1] = ("+ image %s"):format(part.mime_type or "")
  elseif part.type == "tool_result" then
    put(lines, part.text or "")
  end
  return false
end

local function arguments(row)
  for _, part in ipairs(row.content) do
    if part.type == "tool_call" then
      local args = part.arguments
      local text = type(args) == "string" and args or vim.json.encode(args or vim.empty_dict())
      return part.name or "tool", text
    end
  end
  return "tool", "{}"
end

local states = {
  queued = { "queued", "ConvlsRunning" },
  open = { "writing…", "ConvlsRunning" },
  running = { "writing…", "ConvlsRunning" },
  failed = { "failed", "ConvlsError" },
  cancelled = { "stopped", "ConvlsNotice" },
  interrupted = { "interrupted", "ConvlsNotice" },
}

local function tool(row, block)
  local name, args = arguments(row)
  local outcome = "✓"
  local result = {}
  for _, part in ipairs(row.content) do
    if part.type == "tool_result" or part.type == "text" then
      put(result, part.text or "")
      if part.is_error then
        outcome = "✗"
      end
    end
  end
  if states[row.status] then
    outcome = states[row.status][1]
  end
  block.group = outcome == "✗" and "ConvlsError" or "ConvlsTool"
  -- A folded line shows its text and nothing that stands beside it.
  block.lines = { ("### %s %s %s"):format(name, one_line(args, 60), outcome) }
  block.heading = {}
  fence(block.lines, args, "json")
  if #result > 0 then
    fence(block.lines, table.concat(result, "\n"))
  end
  block.folds = { { 1, #block.lines } }
end

local function beside(row)
  local heading = {}
  local function add(text, group)
    heading[#heading + 1] = { " " .. text, group or "ConvlsMeta" }
  end
  if row.siblings and row.siblings.count > 1 then
    add(("%d/%d"):format(row.siblings.index, row.siblings.count), "ConvlsSibling")
  end
  if states[row.status] then
    add(unpack(states[row.status]))
  end
  if row.kind == "assistant" and row.model then
    add(row.model)
  end
  if row.branch then
    add("⎇ " .. row.branch)
  end
  if row.pinned then
    add("pinned")
  end
  if row.redacted then
    add("redacted")
  end
  if row.ghost then
    add("not read: a summary stands for it")
  end
  return heading
end

--- Returns how many messages a summary stands for.
---@param row convls.protocol.Row
---@return integer
function M.covered(row)
  return row.fold and row.fold.count or row.covers_count or #(row.covers_ids or {})
end

--- Returns a count with its noun: 1 message, 2 messages.
---@param n integer
---@param noun string
---@return string
function M.counted(n, noun)
  return ("%d %s%s"):format(n, noun, n == 1 and "" or noun:find("ch$") and "es" or "s")
end

-- The line that a summary folds into: beside it nothing would show.
local function summary_heading(row)
  local words = { "## Summary of " .. M.counted(M.covered(row), "message") }
  local p = row.provenance
  if p and (p.tokens_after or 0) > 0 then
    words[#words + 1] = ("%s to %s tokens"):format(M.short(p.tokens_before or 0), M.short(p.tokens_after))
  end
  if row.fold and row.fold.state == "expanded" then
    words[#words + 1] = "shown above"
  end
  return table.concat(words, " · ")
end

-- A summary's text as people need it: without the first line, which is for the model,
-- and without the sections that say nothing.
local function summary_text(row)
  local parts = {}
  for _, part in ipairs(row.content) do
    local text = (part.text or ""):gsub("^%[compacted checkpoint%]%s*", "")
    text = text:gsub("## [^\n]+\n\nnone\n\n", "")
    -- Below the heading of the summary those of its sections are one deeper.
    parts[#parts + 1] = { type = part.type, text = ("\n" .. text):gsub("\n## ", "\n### "):sub(2) }
  end
  return parts
end

--- Draws a row. Returns nil for one that shows nothing.
---@param row convls.protocol.Row
---@param system? string the system prompt, which the root's row does not hold
---@return convls.Block?
function M.block(row, system)
  local open = row.status == "open" or row.status == "running"
  local size = 0
  for _, part in ipairs(row.content) do
    size = size + #(part.text or "") + 1
  end
  if row.kind == "root" then
    size = #(system or "")
    if size == 0 then
      return nil
    end
  end
  local siblings = row.siblings
  local block = {
    id = row.id,
    key = table.concat({
      row.id,
      row.status,
      row.kind == "root" and system or open and "" or size,
      siblings and siblings.index or 0,
      siblings and siblings.count or 0,
      row.branch or "",
      tostring(row.pinned),
      tostring(row.redacted),
      tostring(row.ghost),
      row.fold and row.fold.state .. row.fold.count or "",
      tostring(row.truncated),
      row.error and row.error.message or "",
    }, "\t"),
    heading = beside(row),
    folds = {},
    lines = {},
    open = open,
    ghost = row.ghost == true,
  }
  if row.kind == "tool" then
    tool(row, block)
  else
    local heading = headings[row.kind] or { "## " .. row.kind, "ConvlsSystem" }
    local content = row.content
    if row.kind == "summary" then
      heading, content = { summary_heading(row), "ConvlsSummary" }, summary_text(row)
    end
    block.lines[1], block.group = heading[1], heading[2]
    for i, part in ipairs(content) do
      local first = #block.lines + 1
      local fold = part_lines(block.lines, part)
      if #block.lines >= first then
        block.streamed = i
        if fold then
          block.folds[#block.folds + 1] = { first, #block.lines }
        end
      end
    end
    if row.kind == "root" then
      put(block.lines, system or "")
    end
    if (row.kind == "summary" or row.kind == "root") and #block.lines > 2 then
      block.folds = { { 1, #block.lines } }
    end
  end
  if not open then
    close_fence(block.lines)
  end
  local remark
  if row.error then
    remark = { require("convls.errors").text(row.error), "ConvlsError" }
  elseif row.truncated then
    remark = { "cut here: it is longer than a transcript shows", "ConvlsNotice" }
  end
  if remark then
    local first = #block.lines + 1
    put(block.lines, remark[1], "> ")
    block.remark = { first, #block.lines, remark[2] }
  end
  block.lines[#block.lines + 1] = ""
  return block
end

--- Draws a row as [block] does. One that can not be drawn says so, and keeps nothing from
--- the others.
---@param row convls.protocol.Row
---@param system? string
---@return convls.Block?
function M.safely(row, system)
  local ok, block = pcall(M.block, row, system)
  for _, line in ipairs(ok and block and block.lines or {}) do
    ok = ok and not line:find("\n", 1, true)
  end
  if ok then
    return block
  end
  return {
    id = row.id,
    key = row.id .. "\tbroken",
    lines = { ("## %s"):format(row.kind), "> This can not be shown: :Convls node shows all of it.", "" },
    heading = {},
    group = "ConvlsError",
    folds = {},
    open = false,
    ghost = false,
  }
end

return M
