--- Actions on chats.
---@param actions { add: fun(action: convls.Action) }
return function(actions)
  local function chats()
    return require("convls.chat")
  end

  -- work calls a method of the current chat.
  local function work(method, ...)
    local args = { ... }
    return function()
      local chat = chats().need()
      if chat then
        chat[method](chat, unpack(args))
      end
    end
  end

  -- ask waits a moment for an answer: completion can not come later.
  local function ask(method, params)
    local result, done
    require("convls.server").request(method, params, function(_, answer)
      result, done = answer, true
    end)
    vim.wait(1000, function()
      return done
    end, 5)
    return result
  end

  actions.add({
    name = "chat",
    args = "[session]",
    desc = "Open a chat: the session with this id or title, or the last one of this folder, or a new one",
    complete = function()
      local result = ask("convls/session/list", { limit = 100 })
      local names = {}
      for _, session in ipairs(result and result.sessions or {}) do
        names[#names + 1] = session.title ~= "" and not session.title:find("%c") and session.title or nil
        names[#names + 1] = session.session_id
      end
      return names
    end,
    run = function(call)
      if call.text == "" then
        chats().open_last()
      else
        chats().open_named(call.text)
      end
    end,
  })
  actions.add({
    name = "new",
    args = "[title]",
    desc = "Make a session and open its chat",
    run = function(call)
      chats().new(call.text)
    end,
  })
  actions.add({
    name = "sessions",
    desc = "Choose a session and open its chat",
    run = function()
      require("convls.chat.pick").session()
    end,
  })
  actions.add({
    name = "model",
    args = "[model]",
    desc = "Choose the model that answers from now on in this chat",
    complete = function()
      local result = ask("convls/model/list", {})
      return vim.tbl_map(function(model)
        return model.id
      end, result and result.models or {})
    end,
    run = function(call)
      require("convls.chat.pick").model(call.args[1])
    end,
  })
  actions.add({
    name = "send",
    desc = "Send what is in the prompt; beside a running answer it waits in the queue",
    keys = { { { "n", "i" }, "<C-CR>" } },
    run = work("send"),
  })
  actions.add({
    name = "stop",
    args = "[queued]",
    desc = "End the answer that is being written, keeping its text; with queued: take the last waiting message out",
    keys = { { "n", "<C-c>" } },
    complete = function()
      return { "queued" }
    end,
    run = function(call)
      if call.text ~= "" and call.text ~= "queued" then
        return vim.notify("convls: it is :Convls stop, or :Convls stop queued", vim.log.levels.ERROR)
      end
      work(call.text == "queued" and "unqueue" or "stop")()
    end,
  })
  actions.add({
    name = "retry",
    args = "[count]",
    desc = "Answer the message at the cursor again, or the last one; with a count: so many answers side by side",
    run = function(call)
      local count = tonumber(call.args[1] or "1")
      if not count or count % 1 ~= 0 or count < 1 or count > 8 then
        return vim.notify("convls: the count is a whole number from 1 to 8", vim.log.levels.ERROR)
      end
      work("retry", count)()
    end,
  })
  actions.add({
    name = "edit",
    args = "[cancel]",
    desc = "Open the message at the cursor, or the last one, in the prompt; sent, it stands beside the old one",
    complete = function()
      return { "cancel" }
    end,
    run = function(call)
      if call.text ~= "" and call.text ~= "cancel" then
        return vim.notify("convls: it is :Convls edit, or :Convls edit cancel", vim.log.levels.ERROR)
      end
      work(call.text == "cancel" and "end_edit" or "edit")()
    end,
  })
  actions.add({
    name = "rewind",
    desc = "Go back to before the message at the cursor, or the last one; nothing is deleted",
    run = work("rewind"),
  })
  actions.add({
    name = "prev",
    desc = "Show the version before, of the message at the cursor or the last one that has several",
    keys = { { "n", "[b" } },
    run = work("sibling", "prev"),
  })
  actions.add({
    name = "next",
    desc = "Show the version after, of the message at the cursor or the last one that has several",
    keys = { { "n", "]b" } },
    run = work("sibling", "next"),
  })
  actions.add({
    name = "attach",
    args = "[buffer|selection|file PATH|quickfix|diagnostics]",
    range = true,
    desc = "Attach something to the next message: with a range those lines, else what is named, else the buffer",
    complete = function(lead, words)
      if #words > 1 and words[1] == "file" then
        return vim.fn.getcompletion(lead, "file")
      end
      return require("convls.chat.attach").kinds
    end,
    run = function(call)
      require("convls.chat.attach").run(call)
    end,
  })
  actions.add({
    name = "detach",
    args = "[number]",
    desc = "Take an attachment off, or all of them",
    run = function(call)
      work("detach", tonumber(call.args[1]))()
    end,
  })
end
