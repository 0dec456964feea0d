import * as z from '../../shapes/index.ts'
import { headerFault, hostFault, methodFault, methods, pathFault } from '../match/pattern.ts'
import type { Match } from '../rule.ts'
import { show } from '../show.ts'
import { listOf, textOf } from './shape.ts'

const method = textOf(methodFault, 20).transform(name => name.toUpperCase())
const host = textOf(hostFault, 255).transform(name => name.toLowerCase())

const header = z
  .record(textOf(headerFault, 128), listOf(z.string().max(1024), { min: 1, max: 100 }))
  .transform((map, context) => {
    const byName = new Map<string, string[]>()
    for (const [name, values] of Object.entries(map)) {
      const lower = name.toLowerCase()
      if (byName.has(lower)) {
        const message = `is ${show(lower)} again, since headers have no case: put all values under one name`
        context.addIssue({ code: 'custom', path: [name], message })
      }
      byName.set(lower, values)
    }
    return Object.fromEntries(byName)
  })

const attribute = z.record(z.string().min(1).max(256), listOf(z.string().max(1024), { min: 1, max: 100 }))

const shape = {
  path: listOf(textOf(pathFault), { min: 1, max: 100 }).describe('Paths such as /orders/**, /users/:id or /img/*.png.'),
  method: listOf(method.meta({ examples: methods.slice(0, 7) }), { min: 1, max: methods.length }).describe(
    'HTTP methods.',
  ),
  host: listOf(host, { min: 1, max: 100 }).describe('Hosts such as api.example.com or *.example.com.'),
  header: header.describe('Headers by name, each with the values that match.'),
  attribute: attribute.describe(
    'Attributes of the call by name, each with the values that match; * stands for any text, !x for all values but x.',
  ),
  websocket: z
    .literal('messages')
    .describe('The messages that callers send over WebSockets, not the calls that open these.'),
}

/** The calls that a rule is about, as a rule writes it. */
export const matchSchema: z.Schema<Match> = z.union([
  z
    .literal('none')
    .describe('No call but those that name the rule.')
    .transform((): Match => ({ none: true })),
  z.strictObject(shape).partial(),
])
