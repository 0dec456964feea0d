import { redisAddressFault } from '../../common/redis-url.ts'
import * as z from '../../shapes/index.ts'
import { show } from '../show.ts'

/** Makes a schema of text that a function checks: it returns what is wrong, if anything. */
export function textOf(fault: (text: string) => string | undefined, longest = 1024): z.Schema<string, string> {
  return z
    .string()
    .max(longest, { abort: true })
    .superRefine((text, context) => {
      const message = fault(text)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })
}

/** Makes a schema of one item, or a list of them; read as a list. */
export function listOf<Output, Input>(
  item: z.Schema<Output, Input>,
  size: { readonly min: number; readonly max: number },
): z.Schema<Output[], Input | Input[]> {
  const list = z.array(item).min(size.min).max(size.max)
  return z.union([item.transform(one => [one]), list])
}

/** Returns a list without duplicates. */
export function withoutDoubles<Input>(list: z.Schema<string[], Input>): z.Schema<string[], Input> {
  return list.superRefine((items, context) => {
    const index = items.findIndex((item, at) => items.indexOf(item) < at)
    if (index < 0) return
    context.addIssue({ code: 'custom', path: [index], message: `${show(items[index])} is named twice: leave one out` })
  })
}

/** Returns the address of a Redis, never shown in messages, since it may hold a password. */
export function redisAddress(): z.Schema<string, string> {
  return textOf(redisAddressFault)
}
