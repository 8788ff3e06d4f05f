--- Writes the sections of doc/convls.txt that come from tables: commands, maps,
--- settings and highlight groups. A test compares them with the file, and writes them
--- anew with -update: go test ./test/neovim -run Help -update
local width = 78

-- wrapped breaks a text into lines, each behind `indent` blanks.
local function wrapped(text, indent)
  local lines, line = {}, ""
  for word in text:gmatch("%S+") do
    if line ~= "" and #line + 1 + #word > width - indent then
      lines[#lines + 1], line = line, ""
    end
    line = line == "" and word or line .. " " .. word
  end
  lines[#lines + 1] = line
  return vim.tbl_map(function(l)
    return (" "):rep(indent) .. l
  end, lines)
end

-- entry writes a line with its tag at the right, and the text below it.
local function entry(lines, head, tag, text)
  tag = "*" .. tag .. "*"
  if vim.fn.strdisplaywidth(head) + 1 + #tag > width then
    lines[#lines + 1] = (" "):rep(width - #tag) .. tag
    lines[#lines + 1] = head
  else
    lines[#lines + 1] = head .. (" "):rep(width - vim.fn.strdisplaywidth(head) - #tag) .. tag
  end
  vim.list_extend(lines, wrapped(text, 8))
  lines[#lines + 1] = ""
end

local function commands()
  local lines = {}
  for _, action in ipairs(require("convls.actions").all()) do
    local head = ":Convls " .. action.name .. (action.args and " " .. action.args or "")
    entry(lines, head, ":Convls-" .. action.name, action.desc .. ".")
  end
  return lines
end

local function maps()
  local lines = {}
  local titles = { graph = "In a graph:", context = "In a context view:" }
  for _, where in ipairs({ "keys", "graph", "context" }) do
    if titles[where] then
      vim.list_extend(lines, { "", titles[where], "" })
    end
    for _, action in ipairs(require("convls.actions").all()) do
      for _, keys in ipairs(action[where] or {}) do
        local modes = type(keys[1]) == "table" and table.concat(keys[1], ", ") or keys[1]
        lines[#lines + 1] = ("%-12s %-6s :Convls %s"):format(keys[2], modes, action.name)
      end
    end
  end
  lines[#lines + 1] = ""
  return lines
end

local function settings()
  local lines = {}
  for _, setting in ipairs(require("convls.config").settings) do
    local head = ("%s  (default %s)"):format(setting.name, vim.inspect(setting.default))
    entry(lines, head, "convls-setting-" .. setting.name, setting.doc)
  end
  return lines
end

local function highlights()
  local lines = {}
  for _, group in ipairs(require("convls.highlight").groups) do
    local doc = group[3]:sub(1, 1):upper() .. group[3]:sub(2)
    entry(lines, ("%s  (links to %s)"):format(group[1], group[2]), "hl-" .. group[1], doc .. ".")
  end
  return lines
end

return { commands = commands, maps = maps, settings = settings, highlights = highlights }
