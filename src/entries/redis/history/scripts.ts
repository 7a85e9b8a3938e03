/**
 * Adds what a pod has counted to a bucket, once. KEYS: the bucket, and which part of each pod was added last. ARGV: the pod, the
 * part, when the bucket expires, for how long parts are known (milliseconds), how many names and greatest; then pairs.
 */
export const ADD = `
local held = redis.call('HGET', KEYS[2], ARGV[1])
if held and tonumber(held) >= tonumber(ARGV[2]) then return 0 end
local names, greatest = tonumber(ARGV[5]), tonumber(ARGV[6])
local at = 7
for _ = 1, names do
  redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  at = at + 2
end
for _ = 1, greatest do
  local known = redis.call('HGET', KEYS[1], ARGV[at])
  if not known or tonumber(known) < tonumber(ARGV[at + 1]) then redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
  at = at + 2
end
for i = at, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('PEXPIREAT', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
`;

/**
 * Packs a bucket that has ended: a field for each release instead of one for each figure. What was added meanwhile stays. ARGV:
 * how often it was packed before, how many fields it had, how many packed; packed pairs, then the fields and their values.
 */
export const PACK = `
local version = redis.call('HGET', KEYS[1], 'v') or '0'
if version ~= ARGV[1] or redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local isSame = redis.call('HLEN', KEYS[1]) == tonumber(ARGV[2])
local at = 4
for _ = 1, tonumber(ARGV[3]) do
  redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  at = at + 2
end
local names = {}
for i = at, #ARGV, 2 do
  local field = ARGV[i]
  if string.sub(field, 1, 2) == 'n:' then names[#names + 1] = field
  elseif redis.call('HGET', KEYS[1], field) == ARGV[i + 1] then redis.call('HDEL', KEYS[1], field)
  else
    isSame = false
    -- A greatest is no sum: whoever reads takes the greater of both.
    local isGreatest = string.match(field, ':[XN]$') or string.match(field, '::h$')
    if not isGreatest then redis.call('HINCRBY', KEYS[1], field, '-' .. ARGV[i + 1]) end
  end
end
if isSame then for _, field in ipairs(names) do redis.call('HDEL', KEYS[1], field) end end
redis.call('HINCRBY', KEYS[1], 'v', 1)
return 1
`;

/** Takes or renews a lease. ARGV: who, for how long. */
export const LEASE = `
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`;

/** Stores a value while the lease is ours. KEYS: the lease, the value's. ARGV: who, the value, for how long. */
export const KEEP = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 1
`;

/** Gives a lease back. ARGV: who. */
export const LEAVE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;
