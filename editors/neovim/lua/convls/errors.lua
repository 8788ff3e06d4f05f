--- Errors for people: what happened, and what to do next.
local M = {}

--- A refusal of the server, or something that kept a request from reaching it.
---@class convls.Error
---@field message string
---@field code? integer the number of JSON-RPC
---@field data? convls.protocol.ErrorData

--- Codes of the plugin itself, beside those of the protocol.
M.NO_SERVER = "no_server"
M.SERVER_LOST = "server_lost"

--- Returns an error of the plugin itself.
---@param code string
---@param message string
---@return convls.Error
function M.new(code, message)
  return { message = message, data = { code = code, retryable = true } }
end

--- The next step for each code that a person can do something about.
---@type table<string, string|fun(data: convls.protocol.ErrorData): string>
local next_step = {
  stale_head = "the view was brought up to date; look, then do it again",
  unknown_session = ":Convls sessions lists the sessions that there are",
  unknown_model = ":Convls model lists the models that can be asked",
  unknown_branch = ":Convls branches lists the branches",
  turn_running = ":Convls stop ends the answer that is being written",
  confirm_required = "it was not confirmed, and nothing was changed",
  unknown_summary = ":Convls compact list shows the summaries that there are",
  unknown_draft = "it has expired, or the server was restarted: :Convls compact draft makes another",
  compaction_running = ":Convls compact cancel ends the compaction that runs",
  stale_compaction = "look at what changed, then do it again",
  summary_refused = "nothing was changed; try again, or another model by the setting compaction.model",
  context_overflow = "choose a model with a larger window by :Convls model, or :Convls fork an earlier message",
  provider_auth = "set the key in the environment (README, Models), then :Convls restart, which asks again, too",
  provider_quota = "choose another model with :Convls model",
  provider_unavailable = "try :Convls retry, or another model with :Convls model",
  stream_cut = ":Convls retry asks again",
  store_locked = 'then :Convls restart (another store: cmd = { "convls", "--data-dir", "DIR" })',
  store_newer = "update convls, then :Convls restart",
  store_unavailable = "mend that, then :Convls restart",
  store_damaged = "run: convls doctor --check",
  disk_full = "make room on the disk, then do it again",
  version_mismatch = "update the older of the two, then :Convls restart",
  no_server = ":checkhealth convls says what was looked for",
  server_lost = ":Convls restart starts it again; the draft is kept",
  provider_rate_limited = function(data)
    if data.retry_after_ms then
      return ("try again in %d s"):format(math.ceil(data.retry_after_ms / 1000))
    end
    return "try again in a while"
  end,
}

--- Returns the code of the protocol in an error, or nil.
---@param err? convls.Error
---@return string?
function M.code(err)
  return err and type(err.data) == "table" and err.data.code or nil
end

--- Returns an error as one sentence for people.
---@param err convls.Error|convls.protocol.NodeError
---@param doing? string what was tried
---@return string
function M.text(err, doing)
  local data = type(err.data) == "table" and err.data or {}
  local code = data.code or (type(err.code) == "string" and err.code) or nil
  local text = err.message or vim.inspect(err)
  if doing then
    text = doing .. ": " .. text
  end
  local step = err.hint or next_step[code]
  if type(step) == "function" then
    step = step(data)
  end
  if code == "stale_head" and data.cause then
    local origin = data.origin and data.origin.client_id
    text = ("%s (moved by %s%s)"):format(text, data.cause, origin and ", client " .. origin or "")
  end
  if step and not text:find(step, 1, true) then
    text = text .. ". Next: " .. step
  end
  return text
end

--- Tells a person of an error.
---@param err convls.Error
---@param doing? string
function M.show(err, doing)
  vim.notify("convls: " .. M.text(err, doing), vim.log.levels.ERROR)
end

return M
