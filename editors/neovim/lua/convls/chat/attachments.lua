--- What is attached to the next message of a chat, and how many tokens it takes.
local errors = require("convls.errors")
local render = require("convls.chat.render")
local server = require("convls.server")

local function tell(text, level)
  vim.notify("convls: " .. text, level or vim.log.levels.INFO)
end

--- Adds these methods.
---@param Chat convls.Chat
return function(Chat)
  -- used asks how many tokens the model would read with a draft.
  local function used(session, context, done)
    server.request("convls/context/get", {
      session_id = session.id,
      text = false,
      limit = 1,
      draft = { content = ".", context = context },
    }, function(err, result)
      if errors.code(err) == errors.SERVER_LOST then
        return -- which is told of already
      elseif err then
        return server.report(err, "counting tokens")
      end
      done(result.budget.used)
    end)
  end

  --- Asks the server how many tokens the attachments take: what the context with one has
  --- more than the context without.
  function Chat:count()
    used(self.session, nil, function(without)
      for _, attachment in ipairs(self.attachments) do
        if not attachment.tokens then
          used(self.session, { attachment.item }, function(with)
            attachment.tokens = with - without
            self.view:draw_bar()
          end)
        end
      end
    end)
  end

  --- Attaches something to the next message.
  ---@param item? convls.protocol.ContextItem
  ---@param problem? string why there is none
  function Chat:attach(item, problem)
    if not item then
      return tell(problem or "there is nothing to attach", vim.log.levels.WARN)
    end
    self.attachments[#self.attachments + 1] = { item = item }
    self:count()
    self.view:draw_bar()
    tell("attached " .. render.origin(item))
  end

  --- Takes attachments off: one by its number, or all.
  ---@param number? integer
  function Chat:detach(number)
    if #self.attachments == 0 then
      return tell("nothing is attached", vim.log.levels.WARN)
    end
    if not number then
      self.attachments = {}
    elseif not table.remove(self.attachments, number) then
      return tell(("there are %d attachments"):format(#self.attachments), vim.log.levels.WARN)
    end
    self.view:draw_bar()
  end
end
