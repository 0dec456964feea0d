import type { JSX } from 'preact'
import { api } from '../api/api.ts'
import type { ServiceRoute } from '../api/generated.ts'
import { useHeldOrder } from '../callers/held-order.ts'
import { paths, second } from '../figures/live.ts'
import { serviceTexts } from '../i18n/services/index.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { Answered, useAnswer } from '../parts/answer.tsx'
import { ProcessTable } from '../services/process-table.tsx'
import { serviceRows } from '../services/service-rows.ts'
import { ServiceTable } from '../services/service-table.tsx'

const REFRESH_SECONDS = 2

/** Shows the services behind the gateway, those in trouble first, and the gateway itself. */
export function Services(): JSX.Element {
  const { loading } = viewMessages.value
  const texts = serviceTexts.value
  const turn = Math.floor(second.value / REFRESH_SECONDS)
  const processes = useAnswer(() => api.processes(), [turn])
  if (paths.value === undefined) return <p class="hush">{loading}</p>
  const hasServices = paths.value.has('/api/v1/services')
  return (
    <>
      <p class="intro">{texts.intro}</p>
      {hasServices ? (
        <Addresses turn={turn} />
      ) : (
        <section class="panel" aria-label={texts.addresses}>
          <p class="empty">{texts.noGateway}</p>
        </section>
      )}
      <section class="panel" aria-label={texts.gateway}>
        <div class="panel-head">
          <h2>{texts.gateway}</h2>
        </div>
        <Answered asked={processes}>{list => <ProcessTable processes={list} />}</Answered>
        <p class="hush footnote">{texts.rejectedNote}</p>
      </section>
    </>
  )
}

function Addresses({ turn }: { turn: number }): JSX.Element {
  const texts = serviceTexts.value
  const asked = useAnswer(() => api.services(), [turn])
  const held = useHeldOrder(serviceRows(asked.answer ?? []), 'services')
  return (
    <section class="panel" aria-label={texts.addresses} {...held.handlers}>
      <div class="panel-head">
        <h2>{texts.addresses}</h2>
        <p class="hush">{texts.note}</p>
      </div>
      <Answered asked={asked}>
        {routes => (
          <>
            <Lookups routes={routes} />
            {held.rows.length === 0 ? <p class="empty">{texts.none}</p> : <ServiceTable rows={held.rows} />}
          </>
        )}
      </Answered>
      <p class="hush footnote">
        {texts.errorsNote} {texts.latencyNote}
      </p>
    </section>
  )
}

/** Names that DNS did not answer for. */
function Lookups({ routes }: { routes: readonly ServiceRoute[] }): JSX.Element | null {
  const troubles = [...new Set(routes.flatMap(one => one.troubles))]
  if (troubles.length === 0) return null
  return (
    <div class="notice degraded lookups">
      <p>{serviceTexts.value.lookups}</p>
      <ul>
        {troubles.map(text => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </div>
  )
}
