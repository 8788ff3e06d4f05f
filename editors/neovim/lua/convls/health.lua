--- `:checkhealth convls`.
local M = {}

local health = vim.health

local function editor()
  health.start("convls: Neovim")
  if vim.fn.has("nvim-0.10") == 1 then
    health.ok("Neovim " .. tostring(vim.version()))
  else
    health.error("Neovim " .. tostring(vim.version()) .. " is too old", "update to 0.10 or later")
  end
  if pcall(vim.treesitter.language.inspect, "markdown") then
    health.ok("the treesitter parser for markdown is there")
  else
    health.info("no treesitter parser for markdown: chats are highlighted by Vim's own syntax file")
  end
end

local function settings()
  health.start("convls: settings")
  local problems = require("convls.config").problems()
  for _, problem in ipairs(problems) do
    health.warn(problem)
  end
  if #problems == 0 then
    health.ok("the settings are fine")
  end
end

--- Asks the server for its status, and waits for a while.
local function ask_status()
  local done, status, failure
  require("convls.server").request("convls/status", {}, function(err, result)
    done, failure, status = true, err, result
  end)
  vim.wait(10000, function()
    return done
  end, 20)
  return status, failure
end

local function server()
  health.start("convls: server")
  local connection = require("convls.server")
  local argv, source = connection.find()
  if not argv then
    return health.error(
      source,
      { "install convls: README, Try it", 'or name it: vim.g.convls = { cmd = "/path/to/convls" }' }
    )
  end
  health.ok(("found by %s: %s"):format(source, table.concat(argv, " ")))
  local status, failure = ask_status()
  if not status then
    if failure then
      return health.error("the server can not be used: " .. require("convls.errors").text(failure))
    end
    return health.error("the server can not be used: it did not answer within 10 s", {
      ("is %s convls? In a shell it answers to the command version"):format(argv[1]),
      "then :Convls restart",
    })
  end
  local protocol = require("convls.protocol")
  health.ok(
    ("convls %s, protocol version %d (the plugin speaks %d)"):format(
      status.version,
      status.protocol_version,
      protocol.version
    )
  )
  local store = status.store
  local line = ("store %s: %d sessions, %.1f MB"):format(store.path, store.sessions, store.bytes / 1e6)
  if store.read_only then
    health.warn(line .. ", read-only", "make room on the disk")
  else
    health.ok(line)
  end
end

function M.check()
  editor()
  settings()
  server()
end

return M
