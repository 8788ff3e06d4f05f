--- What is done with the turns of a chat: send, stop, retry, edit, another version, rewind.
local errors = require("convls.errors")
local server = require("convls.server")

local function tell(text, level)
  vim.notify("convls: " .. text, level or vim.log.levels.INFO)
end

--- Adds these methods.
---@param Chat convls.Chat
return function(Chat)
  local function trimmed(lines)
    local first, last = 1, #lines
    while first <= last and vim.trim(lines[first]) == "" do
      first = first + 1
    end
    while last >= first and vim.trim(lines[last]) == "" do
      last = last - 1
    end
    return table.concat(vim.list_slice(lines, first, last), "\n")
  end

  --- Returns what stands in the prompt and what is attached to it, as a send takes them;
  --- nil where nothing stands there.
  ---@return string? content
  ---@return convls.protocol.ContextItem[]? context
  function Chat:draft()
    local text = trimmed(self.view:prompt())
    if text == "" then
      return nil
    end
    local context = vim.tbl_map(function(attachment)
      return attachment.item
    end, self.attachments)
    return text, #context > 0 and context or nil
  end

  --- Sends what stands in the prompt. It stays there until the server has it.
  function Chat:send()
    if self.sending then
      return tell("the message is being sent", vim.log.levels.WARN)
    end
    self.moved = nil
    local before, sent = self.view:prompt(), self.attachments
    local params = {}
    params.content, params.context = self:draft()
    if not params.content then
      return tell("there is nothing to send: write below the line", vim.log.levels.WARN)
    end
    local method, editing = "convls/turn/send", self.editing
    if editing then
      method, params.node_id = "convls/turn/edit", editing.id
      if editing.kind ~= "user" then
        params.context = nil
      end
    else
      params.expected_head = self.session.head
    end
    -- If the reply was lost, the same message sent again is not made twice.
    local same = self.unanswered
    local message = vim.inspect({ method, params.content, params.context, params.node_id })
    if same and same.message == message then
      params.request_id, params.expected_head = same.request_id, same.expected_head
    else
      params.request_id = server.request_id()
    end
    self.unanswered = { message = message, request_id = params.request_id, expected_head = params.expected_head }
    self.sending = true
    self.view:draw_bar()
    self.session:change(method, params, function(err)
      self.sending = false
      if errors.code(err) ~= errors.SERVER_LOST then
        self.unanswered = nil
      end
      if err then
        self.view:draw_bar()
        return server.report(err, editing and "sending the other version" or "sending")
      end
      self:taken(before, sent, editing)
    end)
  end

  -- taken takes what was sent out of the prompt. What was typed after it, and attached
  -- meanwhile, stays for the next message.
  function Chat:taken(before, sent, editing)
    if self.view.gone then
      return require("convls.chat.drafts").sent(self.session.id, before)
    end
    local now, text = table.concat(self.view:prompt(), "\n"), table.concat(before, "\n")
    if not vim.startswith(now, text) then
      return self.view:draw_bar()
    end
    local rest = vim.split((now:sub(#text + 1):gsub("^%s+", "")), "\n", { plain = true })
    local attached = vim.tbl_filter(function(attachment)
      return not vim.tbl_contains(sent, attachment)
    end, self.attachments)
    if editing then
      rest = rest[2] == nil and rest[1] == "" and editing.draft or rest
      vim.list_extend(attached, editing.attachments)
    end
    self.editing, self.attachments = nil, attached
    self.view:change_prompt(rest)
    self:to_prompt()
    self.view:draw_bar()
  end

  --- Ends what is being answered: all answers, if there are several side by side.
  function Chat:stop()
    local replies = vim.tbl_keys(self.session.running)
    if #replies == 0 then
      return tell("no answer is being written", vim.log.levels.WARN)
    end
    for _, reply in ipairs(replies) do
      self.session:change("convls/turn/cancel", { reply_id = reply }, function(err)
        if err then
          server.report(err, "stopping the answer")
        end
      end)
    end
  end

  --- Takes the last message out of the queue.
  function Chat:unqueue()
    local queued = self.session.queue[#self.session.queue]
    if not queued then
      return tell("nothing waits", vim.log.levels.WARN)
    end
    self.session:change("convls/turn/cancel", { reply_id = queued.reply_id }, function(err, result)
      if err then
        return server.report(err, "taking the message out of the queue")
      end
      if not self:offer(result.content or {}) then
        tell("taken out: " .. queued.preview)
      end
    end)
  end

  --- Returns the row at the cursor, if the cursor is in this chat and not in its prompt.
  ---@return convls.protocol.Row?
  function Chat:row_here()
    if vim.api.nvim_get_current_buf() == self.buf then
      return self.view:row_at(vim.api.nvim_win_get_cursor(0)[1] - 1)
    end
    -- In another view of the session the cursor is on a message, too.
    local session, row = require("convls.branch").viewed()
    if session == self.session and row and row.id ~= "" then
      return self.session:row(row.id) or row --[[@as convls.protocol.Row]]
    end
  end

  --- Returns the row at the cursor if it is of one of the kinds, else the last one of the
  --- first kind that has any.
  local function target(chat, kinds)
    local here = chat:row_here()
    if here and here.kind == "tool" and here.caller then
      here = chat.session:row(here.caller) or { id = here.caller, kind = "assistant" }
    end
    if here then
      if vim.tbl_contains(kinds, here.kind) then
        return here
      end
      return nil
    end
    for _, kind in ipairs(kinds) do
      local row = chat.session:last(kind)
      if row then
        return row
      end
    end
  end

  --- Asks again for the reply at the cursor, or for the last one.
  ---@param count integer how many candidates
  function Chat:retry(count)
    -- In the prompt the whole last answer is meant: all calls of its turn.
    local row = target(self, self:row_here() and { "user", "assistant" } or { "user" })
    if not row then
      return tell("there is no message here to be answered again", vim.log.levels.WARN)
    end
    local params = { node_id = row.id, count = count > 1 and count or nil }
    self.session:change("convls/turn/retry", params, function(err)
      if err then
        server.report(err, "retrying")
      end
    end)
  end

  local function plain_text(parts)
    local texts = {}
    for _, part in ipairs(parts) do
      if part.type == "text" then
        texts[#texts + 1] = part.text
      end
    end
    return vim.split(table.concat(texts, "\n"), "\n", { plain = true })
  end

  local function attached(parts)
    local attachments = {}
    for _, part in ipairs(parts) do
      if part.type == "resource" then
        local item = { type = part.context_type or "text", uri = part.uri, range = part.range, text = part.text or "" }
        attachments[#attachments + 1] = { item = item }
      end
    end
    return attachments
  end

  --- Opens the message at the cursor, or the last one, in the prompt: what is sent then is
  --- another version of it.
  function Chat:edit()
    if self.editing then
      return tell("another version is being written: send it, or :Convls edit cancel", vim.log.levels.WARN)
    end
    local row = target(self, { "user", "assistant" })
    if not row then
      return tell("there is no message here to be edited", vim.log.levels.WARN)
    end
    if row.content and not row.truncated then
      return self:open_edit(row)
    end
    -- What is edited must be all of it.
    server.request("convls/node/get", { session_id = self.session.id, node_id = row.id }, function(err, node)
      if err then
        return server.report(err, "reading the message")
      elseif not self.editing and not self.view.gone then
        self:open_edit(node)
      end
    end)
  end

  -- open_edit opens a message in the prompt, whole.
  function Chat:open_edit(node)
    self.editing = {
      id = node.id,
      kind = node.kind,
      draft = self.view:prompt(),
      attachments = self.attachments,
    }
    self.attachments = attached(node.content)
    self:count()
    self.view:change_prompt(plain_text(node.content))
    self.view:draw_bar()
    if vim.api.nvim_get_current_buf() ~= self.buf then
      self:show()
    end
    self:to_prompt()
  end

  -- offer puts a message that is not sent any more into the prompt, if that is empty.
  function Chat:offer(content)
    if #content == 0 or trimmed(self.view:prompt()) ~= "" or self.editing then
      return false
    end
    self.view:set_prompt(plain_text(content))
    self.attachments = attached(content)
    self:count()
    self.view:draw_bar()
    self:to_prompt()
    return true
  end

  --- Ends [Chat:edit] without sending: the draft from before comes back.
  function Chat:end_edit()
    local editing = self.editing
    if not editing then
      return tell("no message is being edited", vim.log.levels.WARN)
    end
    self.editing, self.attachments = nil, editing.attachments
    self.view:change_prompt(editing.draft)
    self.view:draw_bar()
    self:to_prompt()
  end

  --- Goes to the sibling before or after the row at the cursor, or the last row that has
  --- siblings.
  ---@param way "prev"|"next"
  function Chat:sibling(way)
    local row = self:row_here()
    if not (row and row.siblings and row.siblings.count > 1) then
      -- One way and back again is the same message, though another may come last now.
      row = self.moved and self.session:row(self.moved)
    end
    if not (row and row.siblings and row.siblings.count > 1) then
      row = nil
      for i = #self.session.rows, 1, -1 do
        local candidate = self.session.rows[i]
        if candidate.siblings and candidate.siblings.count > 1 then
          row = candidate
          break
        end
      end
    end
    if not row then
      return tell("nothing here has another version", vim.log.levels.WARN)
    end
    local there = row.siblings[way]
    if not there then
      return tell(way == "next" and "this is the newest version" or "this is the oldest version")
    end
    self.moved = there.id
    self.session:change(
      "convls/branch/checkout",
      { node_id = there.tip, expected_head = self.session.head },
      function(err)
        if err then
          server.report(err, "going to the other version")
        end
      end
    )
  end

  --- Goes back to before the message at the cursor, or the last one. Its text comes into
  --- the prompt if that is empty. Nothing is deleted.
  function Chat:rewind()
    local row = target(self, { "user" })
    if not row then
      return tell("put the cursor on one of your messages", vim.log.levels.WARN)
    end
    self.session:change(
      "convls/branch/rewind",
      { node_id = row.id, expected_head = self.session.head },
      function(err, result)
        if err then
          return server.report(err, "rewinding")
        end
        self:offer(result.content)
      end
    )
  end
end
