const unknown = new WeakSet<object>()

/** Marks a response whose status does not show how the call ended: its charges stay. */
export function markUnknownEnd(response: object): void {
  unknown.add(response)
}

export function isUnknownEnd(response: object): boolean {
  return unknown.has(response)
}
