/** One selector of a PromQL expression: a metric, and the labels it asks about. */
export interface Selector {
  readonly metric: string
  readonly labels: readonly string[]
}

/** The selectors of an expression whose metrics begin with `diana_` or `diana:`. */
export function selectorsIn(expression: string): Selector[] {
  return [...expression.matchAll(/(diana[_:][a-z0-9_:]+)(?:\{([^}]*)\})?/g)].map(([, metric, matchers = '']) => ({
    metric: metric!,
    labels: [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(match => match[1]!),
  }))
}

/** The labels by which an expression groups or joins. */
export function groupedBy(expression: string): string[] {
  const lists = [...expression.matchAll(/\b(?:by|on|group_left)\s*\(([^)]*)\)/g)].map(match => match[1]!)
  return lists.flatMap(list => list.split(',').map(label => label.trim())).filter(label => label !== '')
}

/** The labels of each series name in the text that Prometheus scrapes. */
export function labelsIn(scraped: string): Map<string, Set<string>> {
  const known = new Map<string, Set<string>>()
  for (const [, name, labels = ''] of scraped.matchAll(/^([a-z_]+)(?:\{(.*)\})? \S+$/gm)) {
    const names = known.get(name!) ?? new Set()
    for (const [, label] of labels.matchAll(/(\w+)="/g)) names.add(label!)
    known.set(name!, names)
  }
  return known
}
