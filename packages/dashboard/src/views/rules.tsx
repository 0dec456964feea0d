import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Rule } from '../api/generated.ts'
import { mayChange } from '../api/session.ts'
import { useHeldOrder } from '../callers/held-order.ts'
import { Applied, type AppliedChange } from '../editor/applied.tsx'
import { connection, rules } from '../figures/live.ts'
import { formatNumber } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { later } from '../parts/later.tsx'
import { isNarrow } from '../parts/narrow.ts'
import { returnFocus } from '../parts/sheet.tsx'
import { goWithin, route } from '../route.ts'
import { limitText } from '../rules/limit-text.ts'
import { RuleDetails } from '../rules/rule-details.tsx'
import { RuleTable, SortChoice } from '../rules/rule-table.tsx'
import { parseSort } from '../rules/sort-order.ts'
import { useSortedRules } from '../rules/sort-rules.ts'

const RuleSheet = later(() => import('../rules/form/rule-sheet.tsx').then(module => module.RuleSheet))
const Undo = later(() => import('../editor/undo.tsx').then(module => module.Undo))

/** The task over the view: a form for a new rule, one for a changed rule, or the review of an undone change. */
type Task = { readonly add: true } | { readonly change: Rule } | { readonly undo: AppliedChange }

/** Shows every rule: its source, its limits, and the distance of its busiest caller from them. */
export function Rules(): JSX.Element {
  const { rules: texts, now, loading, editor } = viewMessages.value
  const [wanted, setWanted] = useState('')
  const [task, setTask] = useState<Task | undefined>(undefined)
  const [applied, setApplied] = useState<AppliedChange | undefined>(undefined)
  const sort = parseSort(route.value.query.sort ?? '')
  const sorted = useSortedRules(rules.value ?? [], sort)
  const matching = sorted.filter(rule => isWanted(rule, wanted))
  const held = useHeldOrder(matching, `${route.value.query.sort} ${wanted}`)
  const rows = sort === undefined ? matching : held.rows
  const all = rules.value
  if (all === undefined) return <p class="hush">{connection.value === 'lost' ? '' : loading}</p>
  const chosen = all.find(({ id }) => id === route.value.rest[0])
  const done = (change: AppliedChange) => {
    setTask(undefined)
    setApplied(change)
  }
  const back = () => setTask(undefined)
  return (
    <>
      <p class="intro">{texts.intro}</p>
      <Applied text={applied ? editor.saved : ''} onUndo={() => setTask({ undo: applied! })} />
      {chosen && (
        <RuleDetails
          key={chosen.id}
          rule={chosen}
          onClose={() => close(chosen.id)}
          onChange={() => setTask({ change: chosen })}
          onUndo={change => setTask({ undo: change })}
        />
      )}
      <section class="panel" aria-label={viewMessages.value.columns.rule}>
        <div class="panel-head">
          <p class="hush">{now.rows(formatNumber(rows.length), formatNumber(all.length))}</p>
          {isNarrow.value && <SortChoice sort={sort} />}
          <input
            type="search"
            placeholder={now.filter}
            aria-label={now.filter}
            value={wanted}
            onInput={event => setWanted(event.currentTarget.value)}
          />
          {mayChange.value && (
            <button type="button" class="add" onClick={() => setTask({ add: true })}>
              {texts.add}
            </button>
          )}
        </div>
        {rows.length === 0 ? (
          <p class="empty">{all.length === 0 ? texts.none : texts.noMatch}</p>
        ) : (
          <RuleTable rows={rows} sort={sort} chosen={chosen?.id} handlers={held.handlers} />
        )}
      </section>
      {task && 'undo' in task && <Undo change={task.undo} onUndone={done} onBack={back} />}
      {task && !('undo' in task) && (
        <RuleSheet rule={'change' in task ? task.change : undefined} onApplied={done} onBack={back} />
      )}
    </>
  )
}

/** Closes the details; the focus goes back to the row that they were opened from. */
function close(id: string): void {
  goWithin()
  const rows = document.querySelectorAll<HTMLElement>('.all-rules .rows button.name')
  returnFocus([...rows].find(row => row.textContent === id) ?? null)
}

function isWanted(rule: Rule, wanted: string): boolean {
  const text = [rule.id, limitText(rule), rule.origin ?? '', rule.by.join(' ')].join(' ').toLowerCase()
  return text.includes(wanted.trim().toLowerCase())
}
