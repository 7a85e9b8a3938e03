const two = (value: number): string => String(value).padStart(2, '0');

/** `14:02:11`, where the viewer is. */
export function formatTime(at: number): string {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
