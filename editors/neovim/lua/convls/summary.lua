--- What a summary says, for people: its manifest in a float, each item with the message
--- that it comes from.
local errors = require("convls.errors")
local float = require("convls.float")
local render = require("convls.chat.render")
local server = require("convls.server")

local M = {}

-- The sections of a manifest (docs/compaction.md), what matters most first.
local sections = {
  { "goal", "Goal" },
  { "constraints", "Constraints" },
  { "open_tasks", "Open tasks" },
  { "decisions", "Decisions" },
  { "completed", "Completed" },
  { "artifacts", "Artifacts" },
  { "tests", "Tests" },
  { "unknowns", "Hypotheses and unknowns" },
}

local function item_line(section, item)
  local text = item.text
  if section == "artifacts" and item.handle ~= "" and not text:find(item.handle, 1, true) then
    text = item.handle .. (text ~= "" and ": " .. text or "")
  end
  local line = { { item.negative and "  ✗ " or "  • ", item.negative and "ConvlsError" or "ConvlsMeta" }, { text } }
  if item.status ~= "fact" and not (section == "decisions" and item.status == "decision") then
    line[#line + 1] = { (" (%s)"):format(item.status), "ConvlsNotice" }
  end
  line.id = item.sources and item.sources[1]
  if line.id then
    line[#line + 1] = { " ↩", "ConvlsMeta" }
  end
  return line
end

--- Returns the lines of a manifest: the sections that say something.
---@param manifest table
---@return convls.FloatLine[]
function M.lines(manifest)
  local lines = {}
  for _, section in ipairs(sections) do
    local items = vim.tbl_filter(function(item)
      return item.kind ~= "call_id" -- it tells a person nothing
    end, manifest[section[1]] or {})
    if #items > 0 then
      lines[#lines + 1] = { { section[2], "ConvlsSummary" } }
      for _, item in ipairs(items) do
        lines[#lines + 1] = item_line(section[1], item)
      end
      lines[#lines + 1] = {}
    end
  end
  if #(manifest.pinned or {}) > 0 then
    lines[#lines + 1] = { { "Pinned, word for word", "ConvlsSummary" } }
    for _, pinned in ipairs(manifest.pinned) do
      lines[#lines + 1] = { { "  • ", "ConvlsMeta" }, { pinned.text }, { " ↩", "ConvlsMeta" }, id = pinned.id }
    end
    lines[#lines + 1] = {}
  end
  if (manifest.narrative or "") ~= "" then
    lines[#lines + 1] = { { "In the words of the model, unchecked", "ConvlsSummary" } }
    lines[#lines + 1] = { { "  " .. manifest.narrative } }
    lines[#lines + 1] = {}
  end
  if #lines > 0 then
    lines[#lines] = nil
  end
  return lines
end

-- What stands above the sections: where the summary came from.
local function facts(node, manifest)
  local range = manifest.source_range or {}
  local words = { render.counted(range.count or 0, "node") .. " read" }
  local p = node.provenance
  if p then
    if (p.tokens_after or 0) > 0 then
      words[#words + 1] = ("%s to %s tokens"):format(render.short(p.tokens_before or 0), render.short(p.tokens_after))
    end
    words[#words + 1] = p.model ~= "" and p.model or nil
    words[#words + 1] = p.trigger
    words[#words + 1] = p.edited and "edited" or nil
    words[#words + 1] = p.fell_back and "the model failed, built-in rules wrote it" or nil
    words[#words + 1] = render.cost(p.usage)
  end
  words[#words + 1] = node.created_at:sub(1, 16):gsub("T", " ")
  return { { table.concat(words, " · "), "ConvlsMeta" } }
end

--- Shows a summary in a float. `<CR>` on an item leads to the message it comes from.
---@param session convls.Session
---@param id string
---@param go fun(id: string)
function M.show(session, id, go)
  server.request("convls/node/get", {
    session_id = session.id,
    node_id = id,
    include = { "content", "provenance" },
  }, function(err, node)
    if err then
      return errors.show(err, "reading the summary")
    end
    local lines = { facts(node, node.manifest or {}), {} }
    if node.void then
      table.insert(lines, 2, { { "void: a message that it was made from is gone", "ConvlsError" } })
    elseif node.superseded_summary then
      table.insert(lines, 2, { { "it does not stand: nothing reads it", "ConvlsNotice" } })
    end
    if node.manifest then
      vim.list_extend(lines, M.lines(node.manifest))
    else
      for _, part in ipairs(node.content or {}) do
        for _, line in ipairs(vim.split(part.text or "", "\n", { plain = true })) do
          lines[#lines + 1] = { { line } }
        end
      end
    end
    float.open(lines, { title = "Summary · <CR> goes to the message · q closes", go = go })
  end)
end

return M
