--- The connection: finds the program, starts it once for this Neovim, speaks the
--- handshake, and carries requests and what the server sends.
---
--- It is a client of vim.lsp, so that `:checkhealth vim.lsp`, the log and
--- vim.lsp.config() work as for any server. Below it stands a transport of our own
--- over vim.lsp.rpc: vim.lsp has no place where a refused handshake can be told in
--- other words than those of a stack trace, and convls refuses it for reasons that a
--- person can do something about (a store that another process has).
local bus = require("convls.bus")
local config = require("convls.config")
local errors = require("convls.errors")
local protocol = require("convls.protocol")

local M = {}

---@class convls.Waiting
---@field method string
---@field params table
---@field callback fun(err?: convls.Error, result?: any)

---@alias convls.ServerState "off"|"starting"|"ready"|"stopping"

local state = "off" ---@type convls.ServerState
local client_id ---@type integer?
local capability ---@type convls.protocol.Capability?
-- Requests that were made before the handshake was over, or while a server leaves that
-- another one follows.
local waiting = {} ---@type convls.Waiting[]
-- Callbacks of requests that are on their way: vim.lsp forgets them when a server dies.
local asked = {} ---@type table<integer, fun(err?: convls.Error, result?: any)>
local serial = 0
local deaths = {} ---@type integer[] when the server died last, in ms
local last_failure ---@type string?
local starts = 0
local another = false -- whether a server follows the one that is stopping

-- How long a program may take to answer the handshake until the person is told, in ms.
local SLOW = 10000

--- Returns the folder that the plugin is in: editors/neovim of a checkout, or what a
--- plugin manager made of it.
---@return string
function M.plugin_dir()
  local here = debug.getinfo(1, "S").source:sub(2)
  return vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(vim.fn.fnamemodify(here, ":p"))))
end

--- Returns the server's command line, and where it was found.
---@return string[]? argv
---@return string source, or without argv what was looked for
function M.find()
  local cmd = config.get().cmd
  if cmd then
    local argv = type(cmd) == "table" and vim.deepcopy(cmd) or {
      cmd --[[@as string]],
    }
    argv[1] = vim.fn.expand(argv[1])
    if vim.fn.executable(argv[1]) == 1 then
      return argv, "the setting cmd"
    end
    return nil, ("the setting cmd names %s, which can not be executed"):format(argv[1])
  end
  if vim.fn.executable("convls") == 1 then
    return { vim.fn.exepath("convls") }, "PATH"
  end
  local root = vim.fs.dirname(vim.fs.dirname(M.plugin_dir()))
  local built = root .. "/bin/convls" .. (vim.fn.has("win32") == 1 and ".exe" or "")
  if vim.fn.executable(built) == 1 then
    return { built }, "the checkout"
  end
  if vim.fn.filereadable(root .. "/go.mod") == 1 then
    return nil, ("there is no convls on PATH, and %s is not built: run make build in %s"):format(built, root)
  end
  return nil, "there is no convls on PATH: install it (README, Try it), or set cmd"
end

local function fail_waiting(err)
  local queued = waiting
  waiting = {}
  for _, request in ipairs(queued) do
    request.callback(err)
  end
end

local function fail_asked(err)
  local unanswered = asked
  asked = {}
  for _, callback in pairs(unanswered) do
    callback(err)
  end
end

--- The server has gone, or has refused to serve.
---@param err convls.Error
local function lost(err)
  local for_next = state == "stopping"
  state, client_id, capability = "off", nil, nil
  last_failure = errors.text(err)
  fail_asked(err)
  if not for_next then
    fail_waiting(err)
  end
  bus.emit(bus.SERVER, "lost", err)
end

local function died(code, signal)
  local how = signal ~= 0 and ("signal %d"):format(signal) or ("exit code %d"):format(code)
  if state == "starting" then
    how = how .. ", before it answered"
  end
  local err = errors.new(errors.SERVER_LOST, "the server has ended (" .. how .. ")")
  local log = vim.lsp.log and vim.lsp.log.get_filename and vim.lsp.log.get_filename() or vim.lsp.get_log_path()
  local now = vim.uv.now()
  deaths = vim.tbl_filter(function(at)
    return now - at < 60000
  end, deaths)
  deaths[#deaths + 1] = now
  lost(err)
  bus.autocmd("ConvlsServerLost", { code = code, signal = signal })
  local again = config.get().restart == "auto" and #deaths <= 3
  if again then
    vim.notify("convls: " .. err.message .. "; it is started again", vim.log.levels.WARN)
    M.start()
    return
  end
  vim.notify("convls: " .. errors.text(err) .. ". What it said is in " .. log, vim.log.levels.ERROR)
end

-- Returns what the program says of itself, or nil if it is no convls.
---@return convls.protocol.Capability?
local function capability_of(result)
  local own = vim.tbl_get(type(result) == "table" and result or {}, "capabilities", "experimental", "convls")
  return type(own) == "table" and own or nil
end

-- Keeps vim.lsp from logging until the returned function is called.
local function unlogged()
  local log = require("vim.lsp.log")
  local debug_was, trace_was = log.debug, log.trace
  log.debug, log.trace = function() end, function() end
  return function()
    log.debug, log.trace = debug_was, trace_was
  end
end

--- Answers the server's question for a key, in the coroutine in which vim.lsp.rpc asks.
--- vim.lsp.rpc writes each answer to its log at the level debug, on the way from here to
--- the server and nowhere else: so long it is kept from that.
---@param params convls.protocol.SecretGetParams
---@param closed fun(): boolean
---@return { key?: string }
local function answer_key(params, closed)
  local secrets = require("convls.secrets")
  local function result(key)
    return key and { key = key } or vim.empty_dict()
  end
  if not rawget(_G, "jit") then
    -- Lua 5.1 can not leave a pcall for a while. What is not known at once comes late.
    local answer, over = nil, false
    secrets.get(params, function(key)
      answer = not over and result(key) or answer
      return not over
    end)
    over = true
    vim.schedule(unlogged())
    return answer or result()
  end
  local asker = coroutine.running()
  vim.schedule(function()
    secrets.get(params, function(key)
      if closed() then
        return false
      end
      local log_again = unlogged()
      local ok = coroutine.resume(asker, result(key))
      log_again()
      if not ok then
        -- Not what went wrong: that may quote the key.
        vim.notify("convls: the server could not be told the key of " .. params.provider, vim.log.levels.ERROR)
      end
      return ok
    end)
  end)
  return coroutine.yield()
end

--- Starts the program below a transport that sees the handshake, the questions for keys
--- and the end.
local function transport(argv)
  return function(dispatchers)
    local meant, refused = false, false
    local on_exit, server_request = dispatchers.on_exit, dispatchers.server_request
    local rpc
    rpc = vim.lsp.rpc.start(
      argv,
      vim.tbl_extend("force", dispatchers, {
        server_request = function(method, params)
          if method == "convls/secret/get" then
            return answer_key(params, rpc.is_closing)
          end
          return server_request(method, params)
        end,
        on_exit = function(code, signal)
          vim.schedule(function()
            if vim.v.exiting ~= vim.NIL or refused then
              return
            end
            if meant or state == "stopping" then
              lost(errors.new(errors.SERVER_LOST, "the server was stopped"))
            else
              died(code, signal)
            end
          end)
          -- We tell of it ourselves; vim.lsp tells only of ends that are not in order.
          on_exit(0, 0)
        end,
      })
    )
    local request, notify, terminate = rpc.request, rpc.notify, rpc.terminate
    local function refuse(err)
      refused = true
      terminate()
      lost(err)
      vim.notify("convls: " .. errors.text(err, "starting the server"), vim.log.levels.ERROR)
    end
    rpc.request = function(method, params, callback, replied)
      if method ~= "initialize" then
        return request(method, params, callback, replied)
      end
      local ok, sent, id = pcall(request, method, params, function(err, result)
        if not err and not capability_of(result) then
          err = errors.new(errors.NO_SERVER, argv[1] .. " is no convls")
        end
        if err then
          return refuse(err)
        end
        callback(nil, result)
      end, replied)
      if not ok then
        -- When the client is there: it is being made.
        vim.schedule(function()
          local why = tostring(sent):gsub("^.-:%d+: ", "")
          refuse(errors.new(errors.NO_SERVER, "the settings can not be sent: " .. why))
        end)
        return false
      end
      return sent, id
    end
    rpc.notify = function(method, params)
      meant = meant or method == "exit"
      return notify(method, params)
    end
    rpc.terminate = function()
      meant = true
      return terminate()
    end
    return rpc
  end
end

local function send(request)
  local client = client_id and vim.lsp.get_client_by_id(client_id)
  if not client then
    return request.callback(errors.new(errors.SERVER_LOST, "the server has ended"))
  end
  serial = serial + 1
  local id = serial
  asked[id] = request.callback
  local function answered(err, result)
    local callback = asked[id]
    asked[id] = nil
    if callback then
      callback(err, result)
    end
  end
  local ok
  if vim.fn.has("nvim-0.11") == 1 then
    ok = client:request(request.method, request.params, answered)
  else
    ok = client.request(request.method, request.params, answered)
  end
  if not ok and asked[id] then
    answered(errors.new(errors.SERVER_LOST, "the server has ended"))
  end
end

local function ready(client, result)
  capability = capability_of(result)
  state, client_id, last_failure = "ready", client.id, nil
  local queued = waiting
  waiting = {}
  for _, request in ipairs(queued) do
    send(request)
  end
  bus.emit(bus.SERVER, "ready", capability)
  bus.autocmd("ConvlsReady", { client_id = client.id })
end

--- Returns what vim.lsp starts: also what lsp/convls.lua is.
---@param argv? string[]
---@return vim.lsp.ClientConfig
function M.config(argv)
  argv = argv or M.find()
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.experimental = {
    convls = {
      protocol_version = protocol.version,
      min = protocol.min,
      features = config.get().key and { "secrets" } or nil,
    },
  }
  -- Lua can not tell an empty list from an empty object.
  local settings = config.get().settings
  return {
    name = "convls",
    cmd = argv and transport(argv) or { "convls" },
    filetypes = { "convls" },
    capabilities = capabilities,
    init_options = next(settings) and settings or vim.empty_dict(),
    reuse_client = function(client)
      return client.name == "convls"
    end,
    on_init = ready,
    handlers = {
      ["convls/event"] = function(_, event)
        bus.emit(event.session_id, "event", event)
        bus.emit(bus.STORE, "event", event)
      end,
      ["convls/delta"] = function(_, delta)
        bus.emit(delta.session_id, "delta", delta)
      end,
      ["convls/reset"] = function(_, reset)
        bus.emit(reset.session_id or bus.STORE, "reset", reset)
      end,
    },
  }
end

-- Makes the client of vim.lsp. Returns its number, or nil and what went wrong.
local function start_client(argv)
  local wanted = M.config(argv)
  if vim.fn.has("nvim-0.11") == 1 then
    -- What people say with vim.lsp.config("convls", {...}) counts, but for how it is started.
    local theirs = vim.lsp.config["convls"] or {}
    wanted = vim.tbl_deep_extend("force", theirs, wanted)
    wanted.root_markers, wanted.filetypes = nil, nil
    wanted.root_dir = vim.fn.getcwd()
    -- Never one that there was before: it may be on its way out.
    return vim.lsp.start(wanted, {
      attach = false,
      reuse_client = function()
        return false
      end,
    })
  end
  wanted.root_dir = vim.fn.getcwd()
  return vim.lsp.start_client(wanted)
end

--- Starts the server if it does not run. Requests may be made at once.
function M.start()
  if state ~= "off" then
    return
  end
  local argv, source = M.find()
  if not argv then
    local err = errors.new(errors.NO_SERVER, source)
    last_failure = errors.text(err)
    fail_waiting(err)
    return errors.show(err)
  end
  state = "starting"
  starts = starts + 1
  local this = starts
  local ok, id, why = pcall(start_client, argv)
  if not ok or not id then
    why = ok and why or id
    local text = ("%s, from %s, could not be started"):format(argv[1], source)
    lost(errors.new(errors.NO_SERVER, why and ("%s: %s"):format(text, why) or text))
    return vim.notify("convls: " .. last_failure, vim.log.levels.ERROR)
  end
  client_id = id
  vim.defer_fn(function()
    if state == "starting" and starts == this then
      vim.notify(
        ("convls: %s does not answer. Is it convls? Next: :checkhealth convls, then :Convls restart"):format(argv[1]),
        vim.log.levels.WARN
      )
    end
  end, SLOW)
end

--- Sends a request, and starts the server first where it does not run.
---@param method convls.protocol.Method
---@param params table
---@param callback fun(err?: convls.Error, result?: any) called once, on the main loop
function M.request(method, params, callback)
  local request = { method = method, params = next(params) and params or vim.empty_dict(), callback = callback }
  if state == "ready" then
    return send(request)
  end
  if state == "stopping" and not another then
    -- It is what a view had still to ask: that starts no server that a person has stopped.
    return vim.schedule(function()
      callback(errors.new(errors.SERVER_LOST, "the server was stopped"))
    end)
  end
  waiting[#waiting + 1] = request
  M.start()
end

--- Tells of an error, unless the connection has told of it already.
---@param err convls.Error
---@param doing string
function M.report(err, doing)
  if state ~= "off" or last_failure ~= errors.text(err) then
    errors.show(err, doing)
  end
end

--- Returns a request_id: with it a change is made once, however often it is sent.
---@return string
function M.request_id()
  serial = serial + 1
  return ("nvim-%d-%s-%d"):format(vim.uv.os_getpid(), tostring(vim.uv.hrtime()), serial)
end

local function stop_client(client, force)
  if vim.fn.has("nvim-0.11") == 1 then
    client:stop(force)
  else
    client.stop(force)
  end
end

-- Stops the server, if it runs, and calls `after` when it has gone.
local function stop(after)
  local client = client_id and vim.lsp.get_client_by_id(client_id)
  if not client or state == "off" then
    if after then
      after()
    end
    return
  end
  if after then
    local off
    off = bus.on(bus.SERVER, function(what)
      if what == "lost" then
        off()
        vim.schedule(after)
      end
    end)
  end
  if state == "stopping" then
    return
  end
  state = "stopping"
  local this = starts
  stop_client(client)
  vim.defer_fn(function()
    if state == "stopping" and starts == this then
      stop_client(client, true)
    end
  end, SLOW)
end

--- Stops the server, if it runs, and calls `after` when it has gone.
---@param after? fun()
function M.stop(after)
  another = false
  fail_waiting(errors.new(errors.SERVER_LOST, "the server was stopped"))
  stop(after)
end

--- Starts the server anew, or for the first time.
function M.restart()
  deaths = {}
  another = true
  stop(function()
    if another then
      M.start()
    end
  end)
end

--- Returns the state of the connection, for `:checkhealth` and status lines.
---@return { state: convls.ServerState, capability?: convls.protocol.Capability, failure?: string }
function M.status()
  return { state = state, capability = capability, failure = last_failure }
end

--- Returns the name of this connection in the origin of events, or nil.
---@return string?
function M.client_id()
  return capability and capability.client_id
end

return M
