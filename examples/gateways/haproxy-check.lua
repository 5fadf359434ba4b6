-- http-request lua.check POLICY asks for a decision, and sets the variable txn.limit: "allowed", "denied", "fault" for
-- a check that is wrong, such as one of no policy, or "undecided" without an answer.
local fields = { "ratelimit-policy", "ratelimit", "retry-after" }

core.register_action("check", { "http-req" }, function(txn, policy)
  local client = core.httpclient()
  local answer = client:get{
    url = "http://limits/v1/check/" .. policy .. "/key=ip",
    headers = { ["x-forwarded-for"] = { txn.f:src() } }, -- and no field of the client
    dst = "abns@limits",
    timeout = 200,
  }
  local status = answer and answer.status or 0
  if status == 200 then
    txn:set_var("txn.limit", "allowed")
  elseif status == 429 then
    txn:set_var("txn.limit", "denied")
    txn:set_var("txn.limit_body", (answer.body:gsub("\n", "")))
  elseif status >= 500 or status == 0 then
    txn:set_var("txn.limit", "undecided")
    return
  else
    txn:set_var("txn.limit", "fault")
    return
  end
  for _, name in ipairs(fields) do
    if answer.headers[name] then
      txn:set_var("txn.limit_" .. name:gsub("-", "_"), answer.headers[name][0])
    end
  end
end, 1)
