"""Is it well? A row a question with its most telling figures, each of which leads to the dashboard of the question."""
from oal_grafana import panels as p
from oal_grafana.board import BOARDS, Board, ap_variables, host_variable, open_board
from oal_grafana.dashboards import arriving, congested, control, hosts, model, platform

#: Which figures of each question.
ASKED = {
    "oal-arriving": (arriving, ("Sending", "Silent", "Batches missing", "Refused", "To a row, p99")),
    "oal-congested": (congested, ("Poor or Bad now", "Access points Poor or Bad", "Worst loss", "Lost in queues",
                                  "Lost on the air")),
    "oal-model": (model, ("Onset average precision", "… above persistence", "Brier score", "Features differ",
                          "Features lacked input")),
    "oal-control": (control, ("Enforcing", "Kill switch on", "Guard reverts", "Windows not set",
                              "Throughput with clamps")),
    "oal-hosts": (hosts, ("Hosts sending", "Hosts silent", "Sent again", "Round trip above least",
                          "Networks to gain on")),
    "oal-platform": (platform, ("Components down", "Rows behind Kafka", "Job restarts", "Fullest disk",
                                "Certificate ends in"))
}


class _Leading:
    """A figure that leads to a dashboard when it is clicked."""

    def __init__(self, builder, uid: str):
        self._builder, self._uid = builder, uid

    def build(self):
        panel = self._builder.build()
        panel.grid_pos.w, panel.grid_pos.h = 4, 4
        panel.field_config.defaults.links = [{"title": BOARDS[self._uid], "url": open_board(self._uid)}]
        return panel


def board():
    b = Board("oal-home", "One row a question: green enough to go back to sleep, or which dashboard to open.",
              variables=[*ap_variables(), host_variable(hidden=True)])
    b.add(
        p.firing("Alerts that fire", "Alerts that fire or are about to, and rules that cannot be evaluated. Open one"
                 " for what to do, or see *What to do when an alert fires*.", '{platform="oal"}', size=(24, 6)))
    for uid, (module, titles) in ASKED.items():
        figures = {builder.build().title: builder for builder in module.verdicts()}
        b.row(BOARDS[uid])
        b.add(*(_Leading(figures[title], uid) for title in titles),
              p.prose("Next", f"[{BOARDS[uid]}]({open_board(uid)})", size=(4, 4)))
    return b
