// A value's key has the start of its load, by the clock of Redis, and the text; an invalidated key has the time of the invalidation alone.
// A load that began before the time of its key, or of its method's key, is never written. Keys of one method are in one slot.

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** KEYS: value, method. Returns the time, and where there is a value its age and text; milliseconds. */
export const READ = `${NOW}
local held = redis.call('MGET', KEYS[1], KEYS[2])
local loadedAt = held[1] and tonumber(string.match(held[1], '^(%d+):'))
if not loadedAt or (held[2] and tonumber(held[2]) >= loadedAt) then return { now } end
return { now, now - loadedAt, string.sub(held[1], string.find(held[1], ':') + 1) }`;

/** KEYS: value, method. ARGV: when its load began, text, milliseconds to keep it. */
export const WRITE = `
for _, key in ipairs(KEYS) do
  local newest = string.match(redis.call('GETRANGE', key, 0, 20), '^%d+')
  if newest and tonumber(newest) >= tonumber(ARGV[1]) then return 0 end
end
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. ARGV[2], 'PX', ARGV[3])
return 1`;

/** KEYS: value or method. ARGV: milliseconds to keep it, channel, message. Without memory it still deletes the value and publishes. */
export const INVALIDATE = `${NOW}
local kept = redis.pcall('SET', KEYS[1], string.format('%.0f', now), 'PX', ARGV[1])
if kept.err then redis.call('DEL', KEYS[1]) end
redis.call('PUBLISH', ARGV[2], ARGV[3])
return kept`;
