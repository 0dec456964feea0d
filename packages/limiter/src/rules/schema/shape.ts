import * as z from 'zod'
import { databaseFault } from '../../common/redis-url.ts'
import { show } from '../show.ts'

/** Text that a function checks: it returns what is wrong, if anything. */
export function textOf(fault: (text: string) => string | undefined, longest = 1024): z.ZodType<string, string> {
  return z
    .string()
    .max(longest, { abort: true })
    .superRefine((text, context) => {
      const message = fault(text)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })
}

/** One item, or a list of them; read as a list. */
export function listOf<Output, Input>(
  item: z.ZodType<Output, Input>,
  size: { readonly min: number; readonly max: number },
): z.ZodType<Output[], Input | Input[]> {
  const list = z.array(item).min(size.min).max(size.max)
  return z.union([item.transform(one => [one]), list])
}

/** A list without duplicates. */
export function withoutDoubles<Input>(list: z.ZodType<string[], Input>): z.ZodType<string[], Input> {
  return list.superRefine((items, context) => {
    const index = items.findIndex((item, at) => items.indexOf(item) < at)
    if (index < 0) return
    context.addIssue({ code: 'custom', path: [index], message: `${show(items[index])} is named twice: leave one out` })
  })
}

/** The address of a Redis, never shown in messages, since it may hold a password: a URL, `redis+sentinel://host:26379,host:26379/name`, or the path of a socket. */
export function redisAddress(): z.ZodType<string, string> {
  const fits = (text: string) => {
    if (text.startsWith('/') || /^redis\+sentinel:\/\/[^/]+\/[^/]+/.test(text)) return true
    return /^rediss?:\/\//.test(text) && URL.canParse(text) && new URL(text).host !== ''
  }
  const remedy = 'must be a URL that begins with redis:// or rediss://, such as redis://127.0.0.1'
  return textOf(text => (fits(text) ? databaseFault(text) : remedy))
}
