--- Lists to choose from: sessions and models.
local errors = require("convls.errors")
local render = require("convls.chat.render")
local server = require("convls.server")

local M = {}

local function tell(text, level)
  vim.notify("convls: " .. text, level or vim.log.levels.INFO)
end

--- Lets the person choose a session.
function M.session()
  server.request("convls/session/list", { limit = 500 }, function(err, result)
    if err then
      return server.report(err, "listing the sessions")
    end
    if #result.sessions == 0 then
      return tell("there is no session yet: :Convls new makes one")
    end
    vim.ui.select(result.sessions, {
      prompt = "Session",
      kind = "convls.session",
      format_item = function(session)
        local title = session.title ~= "" and session.title or session.session_id
        return ("%s · %s · %d nodes"):format(title, session.updated_at:sub(1, 16):gsub("T", " "), session.nodes)
      end,
    }, function(session)
      if session then
        require("convls.chat").open(session.session_id)
      end
    end)
  end)
end

--- Chooses the model of the current chat.
---@param name? string
function M.model(name)
  local chat = require("convls.chat").need()
  if not chat then
    return
  end
  local function configure(model)
    chat.session:change("convls/session/configure", { model = model }, function(err)
      if err then
        return server.report(err, "changing the model")
      end
      tell("the model is " .. model)
    end)
  end
  if name then
    return configure(name)
  end
  server.request("convls/model/list", {}, function(err, result)
    if err then
      return server.report(err, "listing the models")
    end
    for _, problem in ipairs(result.errors) do
      tell(("%s: %s"):format(problem.provider, errors.text(problem.error)), vim.log.levels.WARN)
    end
    vim.ui.select(result.models, {
      prompt = "Model",
      kind = "convls.model",
      format_item = function(model)
        return model.id .. (model.window > 0 and (" · %s tokens"):format(render.short(model.window)) or "")
      end,
    }, function(model)
      if model then
        configure(model.id)
      end
    end)
  end)
end

return M
