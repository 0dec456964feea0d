import type { Mistake } from '../../api/generated.ts'
import type { OwnOption } from './rule-form.ts'

/** A field of the form that mistakes are shown beside. */
export type Field =
  | 'id'
  | 'paths'
  | 'methods'
  | 'by'
  | 'limit'
  | 'algorithm'
  | `own.${string}`
  | 'beyond'
  | 'countWhen'
  | 'resetWhen'
  | 'block'
  | 'zone'
  | 'anchor'

const FIELDS: readonly (readonly [option: string, field: Field])[] = [
  ['match.path', 'paths'],
  ['match.method', 'methods'],
  ['whenFull', 'beyond'],
  ['queue', 'beyond'],
  ['answer', 'beyond'],
  ['id', 'id'],
  ['by', 'by'],
  ['limit', 'limit'],
  ['algorithm', 'algorithm'],
  ['countWhen', 'countWhen'],
  ['resetWhen', 'resetWhen'],
  ['block', 'block'],
  ['zone', 'zone'],
  ['anchor', 'anchor'],
]

/** Returns the field that a mistake is about: its message begins with the option, such as `limit[1]`. Undefined if it is about none. */
export function fieldOf({ rule = '', message }: Mistake, id: string, own: readonly OwnOption[]): Field | undefined {
  if (rule !== id.trim()) return undefined
  const [subject = ''] = message.split(' ')
  const fields = [...FIELDS, ...own.map(({ name }) => [name, `own.${name}`] as const)]
  return fields.find(
    ([option]) => subject === option || subject.startsWith(`${option}.`) || subject.startsWith(`${option}[`),
  )?.[1]
}

/** Mistakes by the field they are shown beside; those under undefined are shown below the form. */
export function byField(
  mistakes: readonly Mistake[],
  id: string,
  own: readonly OwnOption[],
): ReadonlyMap<Field | undefined, readonly string[]> {
  const found = new Map<Field | undefined, string[]>()
  for (const mistake of mistakes) {
    const field = fieldOf(mistake, id, own)
    const text =
      field === undefined && mistake.rule !== undefined ? `${mistake.rule}: ${mistake.message}` : mistake.message
    found.set(field, [...(found.get(field) ?? []), text])
  }
  return found
}
