/** A fault of a value, by kind. */
export type Fault =
  | { readonly code: 'invalid_type'; readonly expected: string }
  | { readonly code: 'invalid_value'; readonly values: readonly Primitive[] }
  | { readonly code: 'too_small'; readonly origin: string; readonly minimum: number; readonly isExcluded?: boolean }
  | { readonly code: 'too_big'; readonly origin: string; readonly maximum: number }
  | { readonly code: 'invalid_format'; readonly pattern: string }
  | { readonly code: 'unrecognized_keys'; readonly keys: readonly string[]; readonly known: readonly string[] }
  | { readonly code: 'invalid_union'; readonly errors: readonly (readonly Issue[])[] }
  | { readonly code: 'invalid_key'; readonly issues: readonly Issue[] }
  | { readonly code: 'custom' }

export type Primitive = string | number | boolean | null

/** A fault, with its place in the value and a message. */
export type Issue = Fault & {
  readonly path: readonly PropertyKey[]
  readonly input: unknown
  readonly message: string
}

/** Makes the message of a fault; undefined leaves it to the next one. */
export type ErrorMap = (issue: Fault & { readonly input: unknown }) => string | undefined

/** A fault found while a value is read; its message is made when all are known. */
export type Finding = Fault & {
  path: PropertyKey[]
  readonly input: unknown
  readonly message?: string | undefined
  error?: ErrorMap | undefined
  /** True if the value can be checked further, so that its other faults are reported as well. */
  readonly goesOn: boolean
}

/** Returns each finding with its message, which is empty if its schema has no words for it. */
export function toIssues(findings: readonly Finding[]): Issue[] {
  return findings.map(({ error, goesOn: _, ...finding }) => {
    return { ...finding, message: finding.message ?? error?.(finding) ?? '' }
  })
}

/** Returns the name of a fault for which the schema has no words of its own; `explain` says more. */
export function nameFault(issue: Fault): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be of the kind ${issue.expected}`
    case 'invalid_value':
      return `must be one of ${issue.values.join(', ')}`
    case 'too_small':
      return `must be ${issue.isExcluded ? 'more than' : 'at least'} ${issue.minimum}`
    case 'too_big':
      return `must be at most ${issue.maximum}`
    case 'unrecognized_keys':
      return `has unknown fields: ${issue.keys.join(', ')}`
    default:
      return 'does not fit'
  }
}
