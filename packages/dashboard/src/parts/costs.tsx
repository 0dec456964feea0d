import type { JSX } from 'preact'
import { costsByRule, second } from '../figures/live.ts'
import { formatNumber } from '../i18n/format.ts'
import { messages } from '../i18n/index.ts'

const amountNames = ['reserved', 'settled', 'released', 'expired', 'overrun'] as const
const settledNames = ['usage', 'header', 'estimate', 'none', 'bounded'] as const

/** Shows the costs that rules have reserved and settled since the gateway started; nothing if there are none. */
export function Costs({ wanted }: { wanted: string | undefined }): JSX.Element | null {
  const { costs: texts, columns } = messages.value
  // the figures are not signals by themselves: they are new each second
  const rows = second.value > 0 ? costsByRule().filter(([id]) => wanted === undefined || id === wanted) : []
  if (rows.length === 0) return null
  return (
    <section class="panel costs" aria-label={texts.title}>
      <div class="panel-head">
        <h2>{texts.title}</h2>
        <p class="hush">{texts.note}</p>
      </div>
      {rows.map(([id, { amounts, settled }]) => (
        <div key={id}>
          {(rows.length > 1 || wanted === undefined) && <h3 title={columns.rule}>{id}</h3>}
          <dl class="facts">
            {amountNames.map(name => (
              <Fact key={name} name={name} title={texts.amounts[name]} value={amounts?.[name] ?? 0} />
            ))}
            {settled !== undefined &&
              settledNames.map(name => <Fact key={name} name={name} title={texts.by[name]} value={settled[name]} />)}
          </dl>
        </div>
      ))}
    </section>
  )
}

function Fact({ name, title, value }: { name: string; title: string; value: number }): JSX.Element {
  return (
    <div data-cost={name}>
      <dt>{title}</dt>
      <dd>{formatNumber(value)}</dd>
    </div>
  )
}
