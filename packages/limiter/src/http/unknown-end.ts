const unknown = new WeakSet<object>()

/** Says that the status of a response tells nothing of what became of the call: what it was charged stays charged. */
export function markUnknownEnd(response: object): void {
  unknown.add(response)
}

export function isUnknownEnd(response: object): boolean {
  return unknown.has(response)
}
