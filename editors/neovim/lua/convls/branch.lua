--- Branches: what can be done to the node at the cursor, in a graph or in a chat.
local errors = require("convls.errors")
local server = require("convls.server")

local M = {}

local function tell(text, level)
  vim.notify("convls: " .. text, level or vim.log.levels.INFO)
end

local function fails(doing)
  return function(err)
    if err then
      errors.show(err, doing)
    end
  end
end

--- Returns the session of the view that the cursor is in, and what it is on: a row of a
--- graph or of a context view, or what a document is of. Nothing in a chat and elsewhere.
---@return convls.Session?
---@return { id: string, kind?: convls.protocol.Kind, branches?: string[] }?
function M.viewed()
  local graph = require("convls.graph").current()
  if graph then
    return graph.session, graph:row()
  end
  local context = require("convls.context").current()
  if context then
    return context.session, context:entry()
  end
  local document = require("convls.document").current()
  if document and document.session then
    return document.session, { id = document.node or document.session.head }
  end
end

--- Returns the session that is worked on, and the node at the cursor, in whatever view. In
--- a prompt, or beside a chat, it is HEAD.
---@return convls.Session?
---@return { id: string, kind?: convls.protocol.Kind, branches?: string[] }?
function M.here()
  local session, viewed = M.viewed()
  if session then
    return session, viewed
  end
  local chat = require("convls.chat").need()
  if not chat then
    return nil
  end
  local row = chat:row_here()
  if row and row.kind == "tool" and row.caller then
    row = chat.session:row(row.caller)
  end
  return chat.session, row or { id = chat.session.head }
end

-- with calls work with the session and the node, if there are both.
local function with(work)
  local session, row = M.here()
  if session and row and row.id then
    work(session, row)
  elseif session then
    tell("put the cursor on a message", vim.log.levels.WARN)
  end
end

-- A branch as the server takes it: by a name of the node, or by its tip.
local function branch_of(row, name)
  name = name ~= "" and name or row.branches and row.branches[1]
  return name and { branch = name } or { tip = row.id }
end

--- Moves HEAD to a branch, or to the node at the cursor.
---@param name string a branch, or empty
function M.checkout(name)
  with(function(session, row)
    local params = { expected_head = session.head }
    if name ~= "" then
      params.branch = name
    else
      params.node_id = row.id
    end
    session:change("convls/branch/checkout", params, fails("going there"))
  end)
end

-- ask_name asks for a name unless there is one.
local function ask_name(name, prompt, default, done)
  if name ~= "" then
    return done(name)
  end
  vim.ui.input({ prompt = prompt, default = default }, function(answer)
    if answer then
      done(vim.trim(answer))
    end
  end)
end

--- Begins a branch at the node at the cursor.
---@param name string empty to ask for it
function M.fork(name)
  with(function(session, row)
    ask_name(name, "Name of the new branch: ", nil, function(answer)
      session:change("convls/branch/fork", {
        node_id = row.id,
        name = answer ~= "" and answer or nil,
        expected_head = session.head,
      }, fails("forking"))
    end)
  end)
end

--- Names the branch that ends at the cursor.
---@param name string empty to ask for it; an empty answer takes the name away
function M.rename(name)
  with(function(session, row)
    ask_name(name, "Name of the branch (empty: none): ", row.branches and row.branches[1], function(answer)
      local params = branch_of(row, "")
      params.name = answer
      session:change("convls/branch/rename", params, fails("naming the branch"))
    end)
  end)
end

-- list asks for the branches.
local function list(session, done)
  server.request("convls/branch/list", { session_id = session.id }, function(err, result)
    if err then
      return errors.show(err, "listing the branches")
    end
    done(result.branches)
  end)
end

-- What is to be deleted, as the server takes it. A branch that has messages is named by its
-- tip: if it has grown when the person confirms, that is another one.
local function doomed(branches, row, name)
  local params = branch_of(row, name)
  for _, branch in ipairs(branches) do
    if branch.name == params.branch and branch.name then
      return params, branch.tip
    end
  end
  return params
end

local function confirmed(question)
  local answer = vim.fn.confirm(question, "&Delete\n&Keep", 2, "Warning")
  -- What the question has left on the screen would have the next message wait for a key.
  vim.cmd.redraw({ bang = true })
  return answer == 1
end

--- Deletes the branch that ends at the cursor, or the one named, when the person has
--- confirmed how much that is.
---@param name string
function M.delete(name)
  with(function(session, row)
    list(session, function(branches)
      local params, tip = doomed(branches, row, name)
      session:change("convls/branch/delete", vim.deepcopy(params), function(err)
        if errors.code(err) ~= "confirm_required" then
          return fails("deleting the branch")(err)
        end
        local counted = require("convls.chat.render").counted
        local count = err.data.count or 0
        local question = ("Delete the name %s? No message goes."):format(params.branch or "")
        if count > 0 then
          local of = params.branch and " of " .. params.branch or ""
          question = ("Delete %s%s for good?"):format(counted(count, "node"), of)
          params = tip and { tip = tip } or params
        end
        if not confirmed(question) then
          return
        end
        params.confirm = true
        session:change("convls/branch/delete", params, function(refused, result)
          if refused then
            return errors.show(refused, "deleting the branch")
          elseif result.removed == 0 then
            return tell("the name was deleted, every message is there")
          end
          tell(counted(result.removed, "node") .. " deleted")
        end)
      end)
    end)
  end)
end

local function compare(session, a, b, name)
  server.request("convls/branch/compare", { session_id = session.id, a_id = a, b_id = b }, function(err, result)
    if err then
      return errors.show(err, "comparing")
    end
    local render = require("convls.chat.render")
    local lines = { "# What two branches added since they parted", "" }
    local here = session.info and session.info.branch or ""
    local sides = { { here ~= "" and here or "HEAD", result.a }, { name or "the other", result.b } }
    for _, side in ipairs(sides) do
      local facts = { render.counted(side[2].count, "message"), render.short(side[2].tokens) .. " tokens" }
      facts[#facts + 1] = render.cost(side[2].usage)
      vim.list_extend(lines, { ("## %s: %s"):format(side[1], table.concat(facts, ", ")), "" })
      for _, row in ipairs(side[2].rows) do
        local block = render.block(row)
        for i, line in ipairs(block and block.lines or {}) do
          lines[#lines + 1] = i == 1 and "#" .. line or line
        end
      end
    end
    local buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
    vim.bo[buf].bufhidden = "wipe"
    vim.bo[buf].modifiable = false
    vim.bo[buf].filetype = "markdown"
    vim.cmd("botright split")
    vim.api.nvim_win_set_buf(0, buf)
  end)
end

--- Shows what HEAD's branch and another one added since they parted.
---@param name string a branch; empty for the node at the cursor
function M.compare(name)
  with(function(session, row)
    if name == "" then
      if row.id == session.head then
        return tell("put the cursor on another branch, or name one", vim.log.levels.WARN)
      end
      return compare(session, session.head, row.id, row.branches and row.branches[1])
    end
    list(session, function(branches)
      for _, branch in ipairs(branches) do
        if branch.name == name then
          return compare(session, session.head, branch.tip, name)
        end
      end
      tell(("there is no branch %s: :Convls branches lists them"):format(name), vim.log.levels.ERROR)
    end)
  end)
end

--- Lets the person choose a branch, and goes there.
function M.pick()
  local graph = require("convls.graph").current()
  local chat = not graph and require("convls.chat").need()
  local session = graph and graph.session or chat and chat.session
  if not session then
    return
  end
  list(session, function(branches)
    vim.ui.select(branches, {
      prompt = "Branch",
      kind = "convls.branch",
      format_item = function(branch)
        local clean = require("convls.graph.draw").clean
        local words = { branch.is_head and "◀ HEAD" or nil }
        words[#words + 1] = branch.name and branch.name ~= "" and "[" .. clean(branch.name) .. "]" or nil
        words[#words + 1] = vim.fn.strcharpart(clean(branch.preview or ""), 0, 60)
        words[#words + 1] = ("(%d deep, %s)"):format(branch.depth, branch.updated_at:sub(1, 16):gsub("T", " "))
        return table.concat(words, " ")
      end,
    }, function(branch)
      if branch and not branch.is_head then
        session:change(
          "convls/branch/checkout",
          { node_id = branch.tip, expected_head = session.head },
          fails("going there")
        )
      end
    end)
  end)
end

--- Returns the names of the branches of the current session, for completion.
---@return string[]
function M.names()
  local graph = require("convls.graph").current()
  local chat = require("convls.chat").current()
  local session = graph and graph.session or chat and chat.session
  local names = {}
  for _, branch in ipairs(session and session.branches or {}) do
    if branch.name and branch.name ~= "" then
      names[#names + 1] = branch.name
    end
  end
  return names
end

return M
