import { z } from 'zod'
import { joinWords, show } from './show.ts'

/** Text of which a function says what is wrong, if anything. */
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

/** A list in which nothing stands twice. */
export function withoutDoubles<Input>(list: z.ZodType<string[], Input>): z.ZodType<string[], Input> {
  return list.superRefine((items, context) => {
    const index = items.findIndex((item, at) => items.indexOf(item) < at)
    if (index < 0) return
    context.addIssue({ code: 'custom', path: [index], message: `${show(items[index])} is named twice: leave one out` })
  })
}

/** A URL of one of these schemes; what is wrong is told without showing it, since it may hold a password. */
export function urlOf(...schemes: readonly string[]): z.ZodType<string, string> {
  const starts = schemes.map(scheme => `${scheme}://`)
  const fits = (text: string) =>
    starts.some(start => text.startsWith(start)) && URL.canParse(text) && new URL(text).host !== ''
  return textOf(text =>
    fits(text) ? undefined : `must be a URL that begins with ${joinWords(starts)}, such as ${starts[0]}127.0.0.1`,
  )
}
