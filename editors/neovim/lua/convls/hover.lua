--- What a node is, in a float beside the cursor: kind, time, model, tokens, what it read
--- and what it says. A summary has a float of its own.
local draw = require("convls.graph.draw")
local errors = require("convls.errors")
local render = require("convls.chat.render")
local server = require("convls.server")

local M = {}

-- How many of the nodes that were read are named.
local NAMED = 8

local function facts(node, tokens)
  local words = { draw.clean(node.created_at:sub(1, 16):gsub("T", " ")) }
  if (node.model or "") ~= "" then
    words[#words + 1] = draw.clean(node.model)
  end
  if (tokens or 0) > 0 then
    words[#words + 1] = render.short(tokens) .. " tokens"
  end
  words[#words + 1] = render.cost(node.usage)
  words[#words + 1] = node.status
  return table.concat(words, " · ")
end

-- What it read: how many, and those that the view shows, the newest first.
local function reads(node, rows)
  if #(node.reads or {}) == 0 then
    return {}
  end
  local known, named = {}, 0
  for _, row in ipairs(rows) do
    known[row.id] = row
  end
  local lines = { ("It read %s:"):format(render.counted(#node.reads, "node")) }
  for i = #node.reads, 1, -1 do
    local other = known[node.reads[i]]
    if other and named < NAMED then
      named = named + 1
      lines[#lines + 1] = ("- %s: %s"):format(other.kind, vim.fn.strcharpart(draw.clean(other.preview or ""), 0, 50))
    end
  end
  return lines
end

--- Shows a node.
---@param session convls.Session
---@param row { id: string, kind: string, tokens?: integer }
---@param rows { id: string, kind: string, preview?: string }[] what the view shows
---@param go fun(id: string) where an item of a summary leads
function M.show(session, row, rows, go)
  if row.kind == "summary" then
    return require("convls.summary").show(session, row.id, go)
  end
  server.request("convls/node/get", {
    session_id = session.id,
    node_id = row.id,
    include = { "content", "reads" },
    max_bytes = 20000,
  }, function(err, node)
    if err then
      return errors.show(err, "reading the node")
    end
    local lines = { ("**%s** `%s`"):format(node.kind, node.id), facts(node, row.tokens) }
    vim.list_extend(lines, reads(node, rows))
    lines[#lines + 1] = ""
    for _, part in ipairs(node.content or {}) do
      if part.text then
        vim.list_extend(lines, vim.split(part.text, "\n", { plain = true }))
      end
    end
    vim.lsp.util.open_floating_preview(lines, "markdown", {
      border = "rounded",
      max_width = 80,
      max_height = 20,
      focus_id = "convls.hover",
    })
  end)
end

return M
