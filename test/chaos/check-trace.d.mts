/** An event that a process recorded: see fleet/trace.mjs. */
export interface TraceEvent {
  readonly what: string
  readonly end: number
  readonly caller: string
}

export interface TraceLimit {
  readonly calls: number
  readonly perMs?: number
  readonly ends?: boolean
}

export function checkTrace(
  trace: { readonly events: readonly TraceEvent[] },
  limits: Readonly<Record<string, TraceLimit>>,
): string[]
