/** Loads `node:crypto` when it is first used: it would take a twentieth of the time of a start, and most limiters never need it. */
export function nodeCrypto(): typeof import('node:crypto') {
  return process.getBuiltinModule('node:crypto')
}

/** Loads `node:zlib` when it is first used. */
export function nodeZlib(): typeof import('node:zlib') {
  return process.getBuiltinModule('node:zlib')
}
