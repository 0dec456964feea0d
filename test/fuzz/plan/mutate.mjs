const mutations = [
  (random, text, at) =>
    text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << random.int(0, 7))) + text.slice(at + 1),
  (random, text, at) => text.slice(0, at) + text.slice(at + random.int(1, 8)),
  (random, text, at) => text.slice(0, at) + random.bytes(random.int(1, 8)) + text.slice(at),
  (_random, text, at) => `${text.slice(0, at)}\0${text.slice(at)}`,
  (_random, text, at) => `${text.slice(0, at)}\r\n${text.slice(at)}`,
  (_random, text, at) => `${text.slice(0, at)}\r${text.slice(at)}`,
  (_random, text) => text.replaceAll('\r\n', '\n'),
  (_random, text) => text.replace('\r\n', '\r\n '),
  (_random, text) => text.replace(': ', ' : '),
  (_random, text, at) => text.slice(0, at) + text.slice(0, at),
  (_random, text, at) => text.slice(0, at),
  (random, text) => random.bytes(random.int(1, 400)) + text,
  () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
]

/** The request with one or two faults in its bytes. */
export function mutate(random, text) {
  let changed = text
  for (let left = random.int(1, 2); left > 0; left--) {
    // faults in the head matter most
    const at = random.int(0, Math.max(0, Math.min(changed.length - 1, 600)))
    changed = random.pick(mutations)(random, changed, at)
  }
  return changed
}
